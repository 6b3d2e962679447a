import { ApiError, ProtocolError, TimeoutError, TransportError, apiError } from './errors.js';
import { leaderChanged, maxHops } from './group.js';
import { backoff, sleep } from './wait.js';
const firstRetryMs = 200;
/** Transport sends requests and reads JSON. */
export class Transport {
    #options;
    constructor(options) {
        this.#options = {
            timeoutMs: 10_000, retries: 3, maxRetryWaitMs: 5_000, maxAnswerBytes: 16 << 20,
            fetch: (...args) => globalThis.fetch(...args), ...options,
        };
    }
    /**
     * send returns the body of a success. It throws ApiError, TransportError,
     * ProtocolError, or the reason of the caller's signal.
     */
    async send(request, options = {}) {
        const retries = options.retries ?? this.#options.retries;
        for (let attempt = 0;; attempt++) {
            const node = request.nodes.now;
            try {
                return await this.#attempt(request, node, options);
            }
            catch (error) {
                if (error instanceof TransportError || (error instanceof ApiError && error.code === leaderChanged))
                    request.nodes.failed(node);
                const wait = waitMs(error, request, attempt);
                if (wait === null || attempt >= retries || wait > this.#options.maxRetryWaitMs)
                    throw error;
                await sleep(wait, options.signal);
            }
        }
    }
    async #attempt(request, node, options) {
        const timeout = AbortSignal.timeout(options.timeoutMs ?? this.#options.timeoutMs);
        const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
        let url = new URL(request.target, node);
        try {
            for (let hop = 0;; hop++) {
                const response = await this.#fetch(request, url, signal);
                const to = response.status === 307 && hop < maxHops ? request.nodes.moved(response.headers.get('location'), url) : null;
                if (to === null)
                    return await this.#answer(response, url);
                await response.body?.cancel();
                url = to;
            }
        }
        catch (error) {
            options.signal?.throwIfAborted();
            if (timeout.aborted)
                throw new TimeoutError(`${url}: no answer in time`, { cause: error });
            if (error instanceof ApiError || error instanceof ProtocolError)
                throw error;
            throw new TransportError(`${url}: ${causeOf(error)}`, { cause: error });
        }
    }
    // fetch follows nobody by itself: it would send the body to whomever an answer
    // names, and drop the token. A browser does not show where a redirect goes, so there
    // it is followed where no token can be lost.
    async #fetch({ method, headers, body }, url, signal) {
        const init = { method, headers, signal, credentials: 'omit', ...(body === undefined ? {} : { body }) };
        const response = await this.#options.fetch(url, { ...init, redirect: 'manual' });
        if (response.type !== 'opaqueredirect' || 'authorization' in headers)
            return response;
        return this.#options.fetch(url, { ...init, redirect: 'follow' });
    }
    async #answer(response, url) {
        const text = await this.#read(response, url);
        let body;
        try {
            body = JSON.parse(text);
        }
        catch (error) {
            if (!response.ok)
                throw apiError(response.status, null, response.headers);
            throw new ProtocolError(`${url}: the answer is no JSON`, { cause: error });
        }
        if (!response.ok)
            throw apiError(response.status, body, response.headers);
        return body;
    }
    async #read(response, url) {
        if (response.body === null)
            return '';
        const decoder = new TextDecoder();
        const reader = response.body.getReader();
        let [text, size] = ['', 0];
        for (;;) {
            const { done, value } = await reader.read();
            if (done)
                return text + decoder.decode();
            size += value.length;
            if (size > this.#options.maxAnswerBytes) {
                await reader.cancel();
                throw new ProtocolError(`${url}: an answer of more than ${this.#options.maxAnswerBytes} bytes`);
            }
            text += decoder.decode(value, { stream: true });
        }
    }
}
// causeOf returns the cause that fetch hides behind "fetch failed".
function causeOf(error) {
    if (!(error instanceof Error))
        return String(error);
    return error.cause instanceof Error && error.cause.message ? error.cause.message : error.message;
}
// waitMs is how long to wait before the request is sent again; null: it is not.
// What was refused for its rate was not carried out, so it may always come again.
function waitMs(error, request, attempt) {
    const pause = backoff(attempt, firstRetryMs, Number.MAX_SAFE_INTEGER);
    if (error instanceof ApiError) {
        const again = error.status === 429 || (error.code === leaderChanged && error.reason === null) || (request.repeatable && [408, 502, 503, 504].includes(error.status));
        return again ? error.retryAfterMs ?? pause : null;
    }
    return error instanceof TransportError && request.repeatable ? pause : null;
}
