// Shares in per cent. The same is done in core/percent.py.

// In hundredths, with more decimals where it would be 0 or 100 and is not.
function hundredths(share, decimals = 0) {
  const hundred = 100 * share;
  if (hundred === 0 || Math.abs(hundred - 100) <= 1e-10) return hundred.toFixed(decimals);
  if (hundred > 100 && hundred <= 100.0001) return (100).toFixed(decimals);
  for (let places = decimals; places <= Math.max(decimals, 2); places++) {
    const shown = hundred.toFixed(places);
    if (Number(shown) !== 0 && Number(shown) !== 100) return shown;
  }
  if (Math.abs(hundred) < 1) return hundred > 0 ? "< 0.01" : "> -0.01";
  return hundred < 100 ? "> 99.99" : "> 100";
}
