import type { Problem } from './generated/schemas.js';
/** BlockdeskError is what every error of this SDK is. */
export declare class BlockdeskError extends Error {
    readonly name: string;
}
/** TransportError: there was no answer. Whether the request was carried out is not known. */
export declare class TransportError extends BlockdeskError {
    readonly name: string;
}
/** TimeoutError: there was no answer in time. */
export declare class TimeoutError extends TransportError {
    readonly name = "TimeoutError";
}
/** ProtocolError: what came is not what the desk publishes. */
export declare class ProtocolError extends BlockdeskError {
    readonly name = "ProtocolError";
}
/**
 * OtherGroupError: another group of nodes serves the symbols, at an address that may not
 * be followed: its host was not named, or there are too many of them.
 */
export declare class OtherGroupError extends BlockdeskError {
    readonly name = "OtherGroupError";
    /** The address that serves them, as the service reported it. */
    readonly url: string;
    constructor(url: string, why: string);
}
/** VerificationError: a package or a transaction is not what was asked for. Nothing was signed. */
export declare class VerificationError extends BlockdeskError {
    readonly name = "VerificationError";
}
/** ApiError is an answer of the desk that is no success. */
export declare class ApiError extends BlockdeskError {
    readonly name: string;
    /** Of HTTP. */
    readonly status: number;
    /** The machine word of what is wrong. */
    readonly code: Problem['code'] | (string & {});
    /** More detail, such as the guard that refused; null if there is none. */
    readonly reason: string | null;
    /** The parameter or member that is wrong. */
    readonly field: string | null;
    /** Report it to the desk's operator. */
    readonly requestId: string | null;
    /** When to try again, in ms; null if the desk does not say. */
    readonly retryAfterMs: number | null;
    /** The address of the node that leads, of LEADER_CHANGED; null if it is unknown. */
    readonly leader: string | null;
    constructor(status: number, problem: Partial<Problem>, headers: Headers);
}
/** RequestError: the request is wrong, and would be again. */
export declare class RequestError extends ApiError {
    readonly name = "RequestError";
}
/** NotAdmittedError: the token is missing, unknown, expired, revoked or another taker's. Take the handshake. */
export declare class NotAdmittedError extends ApiError {
    readonly name = "NotAdmittedError";
}
/** NotFoundError: there is no such route, ticket, claim, build or pool. */
export declare class NotFoundError extends ApiError {
    readonly name = "NotFoundError";
}
/** RefusedError: the desk does not do it now; `reason` names the guard. */
export declare class RefusedError extends ApiError {
    readonly name = "RefusedError";
}
/** PaymentMismatchError: the payment was found and does not pay the claim; `reason` says why. */
export declare class PaymentMismatchError extends ApiError {
    readonly name = "PaymentMismatchError";
}
/** RateLimitedError: too many requests of this client's address. */
export declare class RateLimitedError extends ApiError {
    readonly name = "RateLimitedError";
}
/** UnavailableError: the desk, or the chain under it, cannot answer now. */
export declare class UnavailableError extends ApiError {
    readonly name = "UnavailableError";
}
/** apiError makes the error of an answer; its body may be anything. */
export declare function apiError(status: number, body: unknown, headers: Headers): ApiError;
