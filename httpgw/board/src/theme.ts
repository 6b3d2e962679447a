// Dark or light: as the system says, until the reader has chosen.
import { mark } from './dom.ts';

type Theme = 'dark' | 'light';
const key = 'theme';

function kept(): Theme | null {
  try {
    const value = localStorage.getItem(key);
    return value === 'dark' || value === 'light' ? value : null;
  } catch {
    return null; // storage is switched off
  }
}

/** themes sets the theme, follows the system's, and lets a button change it. */
export function themes(button: HTMLElement, changed: () => void): void {
  const system = matchMedia('(prefers-color-scheme: light)');
  let chosen = kept();
  const now = (): Theme => chosen ?? (system.matches ? 'light' : 'dark');
  const apply = () => {
    mark(document.documentElement, 'data-theme', now());
    changed();
  };
  system.addEventListener('change', apply);
  button.addEventListener('click', () => {
    chosen = now() === 'dark' ? 'light' : 'dark';
    try {
      localStorage.setItem(key, chosen);
    } catch {
      // It holds until the page is left.
    }
    apply();
  });
  apply();
}

/** colour is a colour of the theme. */
export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
