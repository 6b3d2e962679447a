/** BlockdeskError is what every error of this SDK is. */
export class BlockdeskError extends Error {
    name = 'BlockdeskError';
}
/** TransportError: there was no answer. Whether the request was carried out is not known. */
export class TransportError extends BlockdeskError {
    name = 'TransportError';
}
/** TimeoutError: there was no answer in time. */
export class TimeoutError extends TransportError {
    name = 'TimeoutError';
}
/** ProtocolError: what came is not what the desk publishes. */
export class ProtocolError extends BlockdeskError {
    name = 'ProtocolError';
}
/**
 * OtherGroupError: another group of nodes serves the symbols, at an address that may not
 * be followed: its host was not named, or there are too many of them.
 */
export class OtherGroupError extends BlockdeskError {
    name = 'OtherGroupError';
    /** The address that serves them, as the service reported it. */
    url;
    constructor(url, why) {
        super(`OTHER_GROUP ${url}: ${why}`);
        this.url = url;
    }
}
/** VerificationError: a package or a transaction is not what was asked for. Nothing was signed. */
export class VerificationError extends BlockdeskError {
    name = 'VerificationError';
}
/** ApiError is an answer of the desk that is no success. */
export class ApiError extends BlockdeskError {
    name = 'ApiError';
    /** Of HTTP. */
    status;
    /** The machine word of what is wrong. */
    code;
    /** More detail, such as the guard that refused; null if there is none. */
    reason;
    /** The parameter or member that is wrong. */
    field;
    /** Report it to the desk's operator. */
    requestId;
    /** When to try again, in ms; null if the desk does not say. */
    retryAfterMs;
    /** The address of the node that leads, of LEADER_CHANGED; null if it is unknown. */
    leader;
    constructor(status, problem, headers) {
        super(`${status} ${problem.code ?? ''}: ${problem.error ?? 'no reason given'}`);
        this.status = status;
        this.code = problem.code ?? '';
        this.reason = problem.reason ?? null;
        this.field = problem.field ?? null;
        this.requestId = problem.request_id ?? headers.get('x-request-id');
        this.retryAfterMs = retryAfterMs(headers.get('retry-after'));
        this.leader = typeof problem.leader?.url === 'string' ? problem.leader.url : null;
    }
}
/** RequestError: the request is wrong, and would be again. */
export class RequestError extends ApiError {
    name = 'RequestError';
}
/** NotAdmittedError: the token is missing, unknown, expired, revoked or another taker's. Take the handshake. */
export class NotAdmittedError extends ApiError {
    name = 'NotAdmittedError';
}
/** NotFoundError: there is no such route, ticket, claim, build or pool. */
export class NotFoundError extends ApiError {
    name = 'NotFoundError';
}
/** RefusedError: the desk does not do it now; `reason` names the guard. */
export class RefusedError extends ApiError {
    name = 'RefusedError';
}
/** PaymentMismatchError: the payment was found and does not pay the claim; `reason` says why. */
export class PaymentMismatchError extends ApiError {
    name = 'PaymentMismatchError';
}
/** RateLimitedError: too many requests of this client's address. */
export class RateLimitedError extends ApiError {
    name = 'RateLimitedError';
}
/** UnavailableError: the desk, or the chain under it, cannot answer now. */
export class UnavailableError extends ApiError {
    name = 'UnavailableError';
}
const classes = {
    400: RequestError, 405: RequestError, 413: RequestError, 415: RequestError, 431: RequestError,
    401: NotAdmittedError, 403: NotAdmittedError, 404: NotFoundError, 409: RefusedError, 422: PaymentMismatchError,
    307: UnavailableError, 429: RateLimitedError, 502: UnavailableError, 503: UnavailableError, 504: UnavailableError,
};
/** apiError makes the error of an answer; its body may be anything. */
export function apiError(status, body, headers) {
    return new (classes[status] ?? ApiError)(status, problemOf(body), headers);
}
// problemOf takes the members that are what they should be, of whatever answered.
function problemOf(body) {
    if (typeof body !== 'object' || body === null)
        return {};
    const words = ['code', 'error', 'reason', 'field', 'request_id'];
    const problem = Object.fromEntries(Object.entries(body).filter(([name, value]) => words.includes(name) && typeof value === 'string'));
    return 'leader' in body && typeof body.leader === 'object' && body.leader !== null ? { ...problem, leader: body.leader } : problem;
}
// retryAfterMs reads seconds, or a date that some proxy may send in their place.
function retryAfterMs(header) {
    if (header === null)
        return null;
    if (/^[0-9]{1,9}$/.test(header))
        return Number(header) * 1000;
    const at = Date.parse(header);
    return Number.isNaN(at) ? null : Math.max(0, at - Date.now());
}
