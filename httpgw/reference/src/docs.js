// Renders the OpenAPI document of this service with Redoc, in the system's dark or light
// theme.
const dark = matchMedia('(prefers-color-scheme: dark)');
const [ground, panel, raised, line, text, soft, accent, good, bad, warn] = dark.matches
  ? ['#0d1014', '#13171d', '#1a2028', '#252c36', '#dde3ea', '#a3afbc', '#78aef0', '#45b98c', '#ee7680', '#e3b45c']
  : ['#ffffff', '#f4f6f8', '#eef1f4', '#dce1e7', '#17202a', '#4d5966', '#1a5cb8', '#08734d', '#b92634', '#7c5000'];
const sans = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const mono = 'ui-monospace, "SF Mono", "Cascadia Mono", "Roboto Mono", Menlo, Consolas, monospace';

// answers returns the colours of a class of answers.
const answers = (color, tabTextColor) => ({ color, backgroundColor: `${color}14`, tabTextColor });

const theme = {
  colors: {
    primary: { main: accent, light: accent, dark: accent }, success: { main: good }, warning: { main: warn }, error: { main: bad },
    gray: { 50: panel, 100: raised }, text: { primary: text, secondary: soft }, border: { dark: line, light: line },
    responses: { success: answers(good, '#45b98c'), error: answers(bad, '#ee7680'), redirect: answers(warn, '#e3b45c'), info: answers(accent, '#78aef0') },
  },
  schema: { linesColor: line, nestedBackground: panel, typeNameColor: soft, typeTitleColor: soft, requireLabelColor: bad, arrow: { color: soft } },
  typography: {
    fontSize: '15px', fontFamily: sans, headings: { fontFamily: sans, fontWeight: '600' },
    code: { fontFamily: mono, color: text, backgroundColor: raised, wrap: true }, links: { color: accent, visited: accent, hover: accent },
  },
  sidebar: { width: '290px', backgroundColor: panel, textColor: text, activeTextColor: accent, groupItems: { activeBackgroundColor: raised }, level1Items: { activeBackgroundColor: raised } },
  // The right side stays dark in both: Redoc colours its code for that.
  rightPanel: { backgroundColor: '#13171d', textColor: '#dde3ea', servers: { overlay: { backgroundColor: raised, textColor: text }, url: { backgroundColor: ground } } },
  codeBlock: { backgroundColor: '#0d1014' },
  fab: { backgroundColor: raised, color: accent },
};

document.documentElement.dataset.theme = dark.matches ? 'dark' : 'light';
// Redoc cannot change its colours later.
dark.addEventListener('change', () => location.reload());

const into = document.getElementById('reference');
Redoc.init('/public-sdk/openapi/svc_public_api_v1.json', { theme, sanitize: true, nativeScrollbars: true, hideHostname: false }, into, (error) => {
  into.setAttribute('aria-busy', 'false');
  into.dataset.state = error ? 'failed' : 'shown';
  if (error) into.textContent = `The OpenAPI document cannot be shown: ${error.message}`;
});
