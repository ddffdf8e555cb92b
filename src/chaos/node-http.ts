/**
 * @module
 * Where HTTP faults enter requests of `node:http` and `node:https`: as an agent is about to find
 * them a socket. Whatever made the request passes here, with whichever agent: `http.request` as it
 * was imported anywhere, axios, got, node-fetch, what instrumentations made of these. Not reached
 * are agents that are none of Node's class and requests with a `createConnection` of their own.
 *
 * `addRequest` is the way from a request to its agent in every release of Node, and undocumented.
 * Where there is none, nothing is reached, and faults count as missed. Beyond it all is as
 * documented: a struck request gets an agent of its own, which makes one connection and keeps none.
 */
import { Agent } from 'node:http';
import type { CreateConnection } from './dispatcher.ts';

type AddRequest = (this: Agent, ...args: unknown[]) => void;

const prototype = Agent.prototype as unknown as { addRequest?: AddRequest };

/**
 * Has requests go where `divert` says; the returned function takes it back.
 *
 * @param divert the connection for the request that is about to be made; undefined for its own
 */
export const divertNodeHttp = (divert: () => CreateConnection | undefined): (() => void) => {
  const { addRequest: original } = prototype;
  if (typeof original !== 'function') return () => {};
  let ended = false;
  const addRequest: AddRequest = function (...args) {
    const createConnection = ended ? undefined : divert();
    if (createConnection === undefined) return original.apply(this, args);
    const agent = Object.assign(new Agent({ keepAlive: false }), { createConnection });
    return original.apply(agent, args);
  };
  prototype.addRequest = addRequest;
  return () => {
    ended = true;
    // Somebody may have put something around it meanwhile.
    if (prototype.addRequest === addRequest) prototype.addRequest = original;
  };
};
