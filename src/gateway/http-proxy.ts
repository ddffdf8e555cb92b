/**
 * @module
 * Which proxy stands between us and an upstream, as the environment says: `HTTP_PROXY`,
 * `HTTPS_PROXY` and `NO_PROXY`, also in lower case, which wins. Each program reads them in its own
 * way; here they mean what they mean to curl, wget, Go and Python.
 */
import { BlockList, isIP } from 'node:net';
import { hostOf, portOf } from './origin.ts';
import type { UpstreamConfig } from './types.ts';

/** Variables by name. */
type Env = Readonly<Record<string, string | undefined>>;

/** A proxy, and how it is used. */
export interface HttpProxy {
  readonly protocol: 'http:' | 'https:';
  readonly hostname: string;
  readonly port: number;
  /** Value of `Proxy-Authorization`. */
  readonly authorization: string | undefined;
  /** It connects us with the upstream, and sees nothing of what we say; else it asks for us. */
  readonly tunnel: boolean;
}

/** The proxy for one URL: none, one, or one that we cannot use. */
export interface ProxyChoice {
  readonly proxy?: HttpProxy;
  /** Why the variable is not honoured, without what may be secret in it. */
  readonly problem?: string;
}

/** A value of the environment, and the name that it stands under. */
const variableOf = (env: Env, name: string): readonly [string, string] | undefined => {
  for (const each of [name.toLowerCase(), name]) {
    const value = env[each]?.trim();
    if (value) return [each, value];
  }
  return undefined;
};

/** As Go: a proxy elsewhere would look for it on its own machine. */
const isLoopback = (host: string): boolean =>
  host === 'localhost' || host.endsWith('.localhost') || host === '::1' || /^127\./.test(host);

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** An address, `10.0.0.0/8`, or `10.0.0.1-10.0.0.9`. */
const hasAddress = (entry: string, host: string): boolean => {
  const [first = '', second, ...more] = entry.split(/[/-]/);
  if (isIP(first) === 0 || more.length > 0) return false;
  const list = new BlockList();
  try {
    if (second === undefined) list.addAddress(first, familyOf(first));
    else if (entry.includes('/')) list.addSubnet(first, Number(second), familyOf(first));
    else list.addRange(first, second, familyOf(first));
  } catch {
    return false;
  }
  return list.check(host, familyOf(host));
};

/** A name stands for itself and all below it; with a dot or `*.` in front for those alone. */
const hasName = (entry: string, host: string): boolean => {
  const name = entry.replace(/^\*/, '');
  return name.startsWith('.') ? host.endsWith(name) : host === name || host.endsWith(`.${name}`);
};

/** Whether an entry of `NO_PROXY` holds for a host; with a port only for that. */
const exempts = (entry: string, host: string, port: number): boolean => {
  if (entry === '*') return true;
  const [, inBrackets, named, given] = /^(?:\[(.*)\]|([^:]*))(?::(\d+))?$/.exec(entry) ?? [];
  // An address of IPv6 without brackets has no port.
  const what = inBrackets ?? named ?? entry;
  if (what === '' || (given !== undefined && Number(given) !== port)) return false;
  return isIP(host) === 0 ? hasName(what, host) : hasAddress(what, host);
};

/** Reads the URL of a proxy; without a scheme it is one of http. */
const parse = (value: string, tunnel: boolean): HttpProxy | undefined => {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const { protocol, username, password } = url;
  if (protocol !== 'http:' && protocol !== 'https:') return undefined;
  let authorization: string | undefined;
  if (username !== '' || password !== '') {
    try {
      const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
      authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
    } catch {
      return undefined;
    }
  }
  return { protocol, hostname: hostOf(url), port: portOf(url), authorization, tunnel };
};

/**
 * The proxy through which a URL is to be called. Never one for this machine itself.
 *
 * @example
 * ```ts
 * const { proxy } = proxyFor(new URL('https://mcp.example/mcp'), process.env);
 * ```
 */
export const proxyFor = (url: URL, env: Env): ProxyChoice => {
  const host = hostOf(url);
  const tunnel = url.protocol === 'https:';
  const [name, value] = variableOf(env, tunnel ? 'HTTPS_PROXY' : 'HTTP_PROXY') ?? [];
  if (name === undefined || value === undefined || isLoopback(host)) return {};
  const [, exempt = ''] = variableOf(env, 'NO_PROXY') ?? [];
  const entries = exempt.toLowerCase().split(/[\s,]+/);
  if (entries.some((entry) => exempts(entry, host, portOf(url)))) return {};
  const proxy = parse(value, tunnel);
  return proxy
    ? { proxy }
    : { problem: `${name} is not honoured: it must be an http or https URL` };
};

/** What people are told of the proxies at the start. */
export const proxyLines = (configs: readonly UpstreamConfig[], env: Env): string[] =>
  configs.flatMap(({ name, address }) => {
    if (address.kind === 'stdio') return [];
    const { proxy, problem } = proxyFor(new URL(address.url), env);
    if (problem !== undefined) return [`warning: ${problem}; ${name} is called directly`];
    if (proxy === undefined) return [];
    const { protocol, hostname, port } = proxy;
    const shown = isIP(hostname) === 6 ? `[${hostname}]` : hostname;
    return [`${name} is called through the proxy ${protocol}//${shown}:${port}`];
  });
