// Server-sent events as the WHATWG's HTML standard reads them (section 9.2.6),
// but for an id without data: that is passed over, as Firefox and npm's
// eventsource do.

/** EventStream turns the text of a stream into events: dispatch({type, data, lastEventId}). */
export class EventStream {
  #dispatch;
  #rest = '';
  #first = true;
  #type = '';
  #data = '';
  #id;

  constructor(lastEventId, dispatch) {
    this.#id = lastEventId;
    this.#dispatch = dispatch;
    this.lastEventId = lastEventId; // what a client sends when it comes back
    this.retry = null; // ms, where the server has said it
  }

  /** feed takes more of the stream. */
  feed(text) {
    if (this.#first && text.length > 0) {
      this.#first = false;
      if (text[0] === '\uFEFF') text = text.slice(1);
    }
    this.#rest += text;
    for (;;) {
      const end = this.#rest.search(/[\r\n]/);
      // A CR at the end may be half of a CR LF.
      if (end < 0 || (this.#rest[end] === '\r' && end === this.#rest.length - 1)) return;
      const line = this.#rest.slice(0, end);
      this.#rest = this.#rest.slice(end + (this.#rest.startsWith('\r\n', end) ? 2 : 1));
      this.#line(line);
    }
  }

  #line(line) {
    if (line === '') return this.#end();
    const colon = line.indexOf(':');
    if (colon === 0) return undefined; // a comment
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (field === 'event') this.#type = value;
    else if (field === 'data') this.#data += `${value}\n`;
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    else if (field === 'retry' && /^[0-9]+$/.test(value)) this.retry = Number(value);
    return undefined;
  }

  #end() {
    if (this.#data !== '') {
      this.lastEventId = this.#id;
      this.#dispatch({ type: this.#type || 'message', data: this.#data.slice(0, -1), lastEventId: this.lastEventId });
    }
    this.#data = '';
    this.#type = '';
  }
}
