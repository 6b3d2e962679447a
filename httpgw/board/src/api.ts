// REST, by the browser's own cache and ETags.
import type { Config } from './messages.ts';

/** A Refused answer says why, in the service's own words. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfter: number, // seconds, 0 = not told
  ) {
    super(message);
  }
}

const patience = 15_000; // ms

export class Api {
  readonly #base: string;

  /** config is of this service; a page on the api address asks the base address for what only that has. */
  constructor(readonly config: Config) {
    this.#base = location.origin === new URL(config.api_url).origin ? config.base_url : location.origin;
  }

  /** wallet is the wallet page's URL, with the terms of a purchase. */
  wallet(terms?: URLSearchParams): string {
    return `${this.#base}/wallet${terms ? `?${terms}` : ''}`;
  }

  get<T>(path: string): Promise<T> {
    return this.#ask<T>(path, {});
  }

  post<T>(path: string, body: object, token?: string): Promise<T> {
    const headers: Record<string, string> = { 'Content-Type': 'application/json' };
    if (token) headers.Authorization = `Bearer ${token}`;
    return this.#ask<T>(path, { method: 'POST', headers, body: JSON.stringify(body) });
  }

  async #ask<T>(path: string, init: RequestInit): Promise<T> {
    const answer = await fetch(this.#base + path, { ...init, signal: AbortSignal.timeout(patience) });
    const body: unknown = await answer.json();
    if (answer.ok) return body as T;
    const { code = `HTTP ${answer.status}`, error = 'The service refuses.', reason } = body as Record<string, string | undefined>;
    throw new Refused(answer.status, reason ? `${code} (${reason})` : code, error, Number(answer.headers.get('Retry-After')) || 0);
  }
}

/** loadConfig asks the service that has sent the page. */
export async function loadConfig(): Promise<Config> {
  const answer = await fetch('/board/config.json', { signal: AbortSignal.timeout(patience) });
  if (!answer.ok) throw new Error(`/board/config.json: status ${answer.status}`);
  return (await answer.json()) as Config;
}

/** explain is an error in one line for a person. */
export function explain(error: unknown): string {
  if (error instanceof Refused) {
    const again = error.retryAfter > 0 ? ` Again in ${error.retryAfter} s.` : '';
    return `${error.code}: ${error.message}${again}`;
  }
  if (error instanceof TypeError || (error instanceof DOMException && error.name === 'TimeoutError')) return 'The service does not answer.'; // fetch has failed
  return error instanceof Error ? error.message : String(error);
}
