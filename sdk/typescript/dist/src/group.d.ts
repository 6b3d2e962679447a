/** What a node that does not lead says, as a code and in a WebSocket's close. */
export declare const leaderChanged = "LEADER_CHANGED";
/** What a group of nodes says of a symbol that another one serves. */
export declare const otherGroup = "OTHER_GROUP";
/** How many other nodes one attempt is sent on to at most. */
export declare const maxHops = 3;
/** How many other groups one feed goes to for their symbols. */
export declare const maxOtherGroups = 8;
/**
 * Group is the addresses that serve the same. What goes out may bear a token, so it
 * goes to hosts that the program has named alone, and never from TLS to plain text.
 */
export declare class Group {
    #private;
    constructor(nodes: readonly URL[], trusted?: readonly URL[]);
    /** now is the node to ask. */
    get now(): URL;
    /** failed makes the next one the node to ask, where it is that one that has failed. */
    failed(node: URL): void;
    /** moved is a URL that a node has named; null: it is not to be followed. */
    moved(url: string | null, by: URL): URL | null;
}
