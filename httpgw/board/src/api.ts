// REST requests. The browser handles caching and ETags.
import type { Config } from './messages.ts';

/** ServiceError is an error answer of the service, with its code and sentence. */
export class ServiceError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfter: number, // seconds, 0 = none
  ) {
    super(message);
  }
}

const patience = 15_000; // ms

export class Api {
  readonly #base: string;

  /** A page on the api address sends its requests to the base address, which serves all paths. */
  constructor(readonly config: Config) {
    this.#base = location.origin === new URL(config.api_url).origin ? config.base_url : location.origin;
  }

  /** wallet returns the URL of the wallet page, with the terms of a purchase. */
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
    throw new ServiceError(answer.status, reason ? `${code} (${reason})` : code, error, Number(answer.headers.get('Retry-After')) || 0);
  }
}

/** loadConfig loads the configuration of the service that sent the page. */
export async function loadConfig(): Promise<Config> {
  const answer = await fetch('/board/config.json', { signal: AbortSignal.timeout(patience) });
  if (!answer.ok) throw new Error(`/board/config.json: status ${answer.status}`);
  return (await answer.json()) as Config;
}

/** explain returns an error as one line of text. */
export function explain(error: unknown): string {
  if (error instanceof ServiceError) {
    const again = error.retryAfter > 0 ? ` Try again in ${error.retryAfter} s.` : '';
    return `${error.message}${again} (${error.code})`;
  }
  if (error instanceof TypeError || (error instanceof DOMException && error.name === 'TimeoutError')) return 'The service does not answer.'; // fetch failed
  return error instanceof Error ? error.message : String(error);
}
