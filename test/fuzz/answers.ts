/** Reads answers from a connection, as far as their framing and status: RFC 9112. */

export interface AnswerReader {
  /** The status of the last answer whose head has arrived; 0 before. */
  readonly status: number;
  /** `whole`: an answer on a connection that can be used again; `unusable`: any other that has ended. */
  readonly state: 'reading' | 'whole' | 'unusable';
  add(chunk: Buffer): void;
}

const HEAD_END = '\r\n\r\n';

/** Reads one answer, and skips the informational ones before it. */
export function createAnswerReader(isHead: boolean): AnswerReader {
  let unread: Buffer = Buffer.alloc(0);
  let status = 0;
  let state: AnswerReader['state'] = 'reading';
  let body: 'head' | 'chunked' | 'to-end' | number = 'head';
  let closes = false;

  const end = (): void => {
    state = closes || unread.length > 0 ? 'unusable' : 'whole';
  };
  /** Returns whether it took anything. */
  const step = (): boolean => {
    if (body === 'to-end') return false;
    if (body === 'head') {
      const at = unread.indexOf(HEAD_END);
      if (at < 0) return false;
      const head = unread.toString('latin1', 0, at);
      unread = unread.subarray(at + HEAD_END.length);
      status = Number(head.slice(9, 12));
      if (status < 200 && status !== 101) return true;
      closes = /\r\nconnection: *close/i.test(head);
      const [, length] = /\r\ncontent-length: *(\d+)/i.exec(head) ?? [];
      if (isHead || status === 204 || status === 304) body = 0;
      else if (/\r\ntransfer-encoding: *chunked/i.test(head)) body = 'chunked';
      else body = length === undefined ? 'to-end' : Number(length);
      if (body === 0) end();
      return state === 'reading';
    }
    if (body === 'chunked') {
      const at = unread.indexOf('\r\n');
      if (at < 0) return false;
      const size = Number.parseInt(unread.toString('latin1', 0, at), 16);
      if (unread.length < at + size + 4) return false;
      unread = unread.subarray(at + size + 4);
      if (size === 0) end();
      return state === 'reading';
    }
    const taken = Math.min(body, unread.length);
    unread = unread.subarray(taken);
    body -= taken;
    if (body === 0) end();
    return false;
  };
  return {
    get status() {
      return status;
    },
    get state() {
      return state;
    },
    add(chunk) {
      if (state !== 'reading') {
        state = 'unusable';
        return;
      }
      unread = body === 'to-end' ? unread : unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
      while (step());
    },
  };
}
