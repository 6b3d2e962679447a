/** Operation is one endpoint. */
export interface Operation {
  readonly method: 'GET' | 'POST';
  /** With `{name}` where a value of Input.path goes. */
  readonly path: string;
  /** The address; default: the base address. */
  readonly on?: 'base' | 'api';
  /** It takes an Idempotency-Key, and every call of ours sends one. */
  readonly keyed?: boolean;
  /** It needs the token of a handshake. */
  readonly bearer?: boolean;
  /** It answers a number; every other operation answers an object or an array. */
  readonly number?: boolean;
}

/** Input is what goes into one request. */
export interface Input {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
}

/** CallOptions are what a caller may have differently for one call. */
export interface CallOptions {
  /** Ends the call, its retries included; it then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** How long one attempt may take, in ms. */
  readonly timeoutMs?: number;
  /** How often a call is repeated after its first attempt, where that is safe. */
  readonly retries?: number;
}

/** KeyedOptions are those of a call that changes something. */
export interface KeyedOptions extends CallOptions {
  /**
   * 1 to 128 visible ASCII characters. The desk carries out one key once and
   * gives the same answer again for 24 h. Without it each call has a random one:
   * give your own where a restart of your program must not buy twice.
   */
  readonly idempotencyKey?: string;
}
