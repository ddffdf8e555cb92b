/**
 * @module
 * Ids of requests as the server behind a transport gets to see them.
 */
import type { RequestId } from './jsonrpc.ts';

/**
 * The SDK (1.32.2) ignores the cancellation of a request whose id is 0 or "" (it asks whether
 * the id is truthy). Inside, such ids get another form; ids that look like it get it as well,
 * so that no two ids ever become one.
 */
export const innerId = (id: RequestId): RequestId =>
  id === 0 || (typeof id === 'string' && (id === '' || id.startsWith('#')))
    ? `#${typeof id}:${id}`
    : id;
