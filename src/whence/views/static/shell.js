// The button of every page. It says what a click will do; until then the page follows the system.
(() => {
  const DARK = "(prefers-color-scheme: dark)", ALWAYS = "(min-width: 0)", NEVER = "(max-width: 0)";
  const system = window.matchMedia(DARK), button = document.querySelector(".shell button");
  let chosen = null; // light or dark, once somebody clicked

  // Every rule of this page that is for the dark, with the condition that it was written with.
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).filter((rule) => rule.media && rule.media.mediaText.includes(DARK));
  const written = rules.map((rule) => rule.media.mediaText);
  const isDark = () => (chosen ? chosen === "dark" : system.matches);

  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    chosen = isDark() ? "light" : "dark";
    document.documentElement.style.colorScheme = chosen;
    rules.forEach((rule, i) => { rule.media.mediaText = written[i].replace(DARK, chosen === "dark" ? ALWAYS : NEVER); });
    label();
    window.dispatchEvent(new Event("themechange")); // what a script has drawn is drawn again
  });
  system.addEventListener("change", label);
  button.hidden = false;
  label();
})();
