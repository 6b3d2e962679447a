/** What a node that does not lead says, as a code and in a WebSocket's close. */
export const leaderChanged = 'LEADER_CHANGED';

/** What a group of nodes says of a symbol that another one serves. */
export const otherGroup = 'OTHER_GROUP';

/** How many other nodes one attempt is sent on to at most. */
export const maxHops = 3;

/** How many other groups one feed goes to for their symbols. */
export const maxOtherGroups = 8;

/**
 * Group is the addresses that serve the same. What goes out may bear a token, so it
 * goes to hosts that the program has named alone, and never from TLS to plain text.
 */
export class Group {
  readonly #nodes: readonly URL[];
  readonly #hosts: ReadonlySet<string>;
  #at = 0;

  constructor(nodes: readonly URL[], trusted: readonly URL[] = []) {
    this.#nodes = nodes;
    this.#hosts = new Set([...nodes, ...trusted].map((u) => u.hostname));
  }

  /** now is the node to ask. */
  get now(): URL {
    return this.#nodes[this.#at]!;
  }

  /** failed makes the next one the node to ask, where it is that one that has failed. */
  failed(node: URL): void {
    if (node === this.now) this.#at = (this.#at + 1) % this.#nodes.length;
  }

  /** moved is a URL that a node has named; null: it is not to be followed. */
  moved(url: string | null, by: URL): URL | null {
    if (url === null || !URL.canParse(url)) return null;
    const to = new URL(url);
    const known = ['http:', 'https:', 'ws:', 'wss:'].includes(to.protocol) && to.username === '' && this.#hosts.has(to.hostname);
    return known && (isTls(to) || !isTls(by)) ? to : null;
  }
}

function isTls(url: URL): boolean {
  return url.protocol === 'https:' || url.protocol === 'wss:';
}
