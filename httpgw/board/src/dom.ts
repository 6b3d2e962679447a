// DOM helpers. Text is always set as text, never as HTML.

/** byId returns the element of an id, or throws. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no #${id} in the page`);
  return found as T;
}

type Attributes = Record<string, string | boolean | undefined>;

/** create returns a new element. Attributes that are false or undefined are omitted. */
export function create<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children);
  return element;
}

/** setText sets an element's text if it differs. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** setAttr sets an attribute if it differs; null removes it. */
export function setAttr(element: Element, name: string, value: string | null): void {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** rows adds or removes children until there are count, and returns them. */
export function rows<T extends HTMLElement>(parent: HTMLElement, count: number, build: () => T): T[] {
  while (parent.children.length > count) parent.lastElementChild?.remove();
  while (parent.children.length < count) parent.append(build());
  return [...parent.children] as T[];
}

/** painter returns a function that runs the last paint of each name before the next frame. */
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
    // A hidden page has no frames, so it is painted when it becomes visible.
    requestAnimationFrame(run);
  };
}

/** clock returns the time of day of a timestamp, in UTC. */
export const clock = (ts: string): string => ts.slice(11, 19);
