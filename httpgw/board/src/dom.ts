// The few things that the pages need of the DOM. Text is always set as text.

/** one returns the element of an id, which the page has. */
export function one<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no #${id} in the page`);
  return found as T;
}

type Attributes = Record<string, string | boolean | undefined>;

/** make returns a new element; an attribute that is false or undefined is left out. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children);
  return element;
}

/** say sets a text where it is another one. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** mark sets an attribute where it is another one; null takes it away. */
export function mark(element: Element, name: string, value: string | null): void {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** rows gives a parent exactly count children, made by build, and returns them. */
export function rows<T extends HTMLElement>(parent: HTMLElement, count: number, build: () => T): T[] {
  while (parent.children.length > count) parent.lastElementChild?.remove();
  while (parent.children.length < count) parent.append(build());
  return [...parent.children] as T[];
}

/** painter runs what was asked for once, before the next frame. */
export function painter(): (name: string, paint: () => void) => void {
  const due = new Map<string, () => void>();
  let asked = false;
  const run = () => {
    asked = false;
    const now = [...due.values()];
    due.clear();
    for (const paint of now) paint();
  };
  return (name, paint) => {
    due.set(name, paint);
    if (asked) return;
    asked = true;
    // A hidden page has no frames; it need not be painted until it is seen.
    requestAnimationFrame(run);
  };
}

/** clock is the time of day of a timestamp of the service, in UTC. */
export const clock = (ts: string): string => ts.slice(11, 19);
