// Keyboard shortcuts. They are ignored while an input has the focus.

interface Keys {
  filter: HTMLInputElement;
  help: HTMLDialogElement;
  open: HTMLElement;
  pair(n: number): void;
  step(by: 1 | -1): void;
  enter(): void;
}

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches('input:not([type="checkbox"]), select, textarea, [contenteditable]');

const acting = (target: EventTarget | null): boolean => target instanceof HTMLElement && target.matches('a, button, select, summary');

/** keys installs the shortcuts. */
export function keys(k: Keys): void {
  const actions: Record<string, () => void> = {
    '/': () => k.filter.focus(), '?': () => k.help.showModal(), 1: () => k.pair(1), 2: () => k.pair(2), j: () => k.step(1), k: () => k.step(-1),
  };
  k.open.addEventListener('click', () => k.help.showModal());
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || k.help.open) return;
    if (event.target === k.filter && (event.key === 'Escape' || event.key === 'Enter')) {
      if (event.key === 'Escape') k.filter.value = '';
      k.filter.dispatchEvent(new Event('input'));
      k.filter.blur();
      return;
    }
    if (typing(event.target)) return;
    const action = event.key === 'Enter' && !acting(event.target) ? k.enter : actions[event.key];
    if (!action) return;
    event.preventDefault(); // otherwise the filter gets the slash
    action();
  });
}
