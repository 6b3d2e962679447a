// The dark or light theme: the system's, until the user has chosen.
import { setAttr } from './dom.ts';

type Theme = 'dark' | 'light';
const key = 'theme';

function storedTheme(): Theme | null {
  try {
    const value = localStorage.getItem(key);
    return value === 'dark' || value === 'light' ? value : null;
  } catch {
    return null; // storage is disabled
  }
}

/** themes sets the theme, follows the system's, and lets a button change it. */
export function themes(button: HTMLElement, changed: () => void): void {
  const system = matchMedia('(prefers-color-scheme: light)');
  let chosen = storedTheme();
  const now = (): Theme => chosen ?? (system.matches ? 'light' : 'dark');
  const apply = () => {
    setAttr(document.documentElement, 'data-theme', now());
    changed();
  };
  system.addEventListener('change', apply);
  button.addEventListener('click', () => {
    chosen = now() === 'dark' ? 'light' : 'dark';
    try {
      localStorage.setItem(key, chosen);
    } catch {
      // The choice lasts until the page is closed.
    }
    apply();
  });
  apply();
}

/** colour is a colour of the theme. */
export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
