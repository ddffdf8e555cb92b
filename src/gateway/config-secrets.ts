/**
 * @module
 * Which values of a configuration must not be seen, and how they are kept from being seen.
 */
import { redact } from '../resilience/redact.ts';
import type { UpstreamAddress } from './types.ts';

const MARK = '***';

/**
 * A shorter value is no secret: masked wherever it occurs, "8080" or "true" would make every
 * text unreadable.
 */
const SHORTEST = 6;

/** Not `PWD`, `SSH_AUTH_SOCK`, `GIT_AUTHOR_NAME`, `XDG_SESSION_TYPE`: paths and names of people. */
const NAMED_LIKE_ONE =
  /key(?!board)|token|secret|passw|passphrase|[_-]pwd|credential|auth(?!or|_sock)|cookie|session[_-]?id|signature/i;
/** An option of a command line whose next word is a secret. */
const SECRET_OPTION = /^--?[\w-]*(?:key|token|secret|password|passwd|pwd)$/i;

/** The credential of `Bearer abc`, which is what turns up elsewhere. */
const withoutScheme = (value: string): string => value.replace(/^\w+\s+/, '');

const valuesOfQuery = (url: string): string[] =>
  URL.canParse(url) ? [...new URL(url).searchParams.values()] : [];

const literalSecrets = (address: UpstreamAddress): string[] => {
  if (address.kind !== 'stdio') {
    const headers = Object.values(address.headers);
    return [...headers, ...headers.map(withoutScheme), ...valuesOfQuery(address.url)];
  }
  const { args, env } = address;
  const named = Object.entries(env).filter(([name]) => NAMED_LIKE_ONE.test(name));
  const optional = args.filter((_, index) => SECRET_OPTION.test(args[index - 1] ?? ''));
  return [...named.map(([, value]) => value), ...optional];
};

/** The values of an upstream that must never be shown, longest first. */
export const secretsOf = (address: UpstreamAddress, fromVariables: Iterable<string>): string[] =>
  [...new Set([...fromVariables, ...literalSecrets(address)])]
    .filter((value) => value.length >= SHORTEST)
    .toSorted((a, b) => b.length - a.length);

/** `text` with each of `secrets`, and whatever else looks like a secret, masked. */
export const masked = (text: string, secrets: readonly string[]): string => {
  // Longest first, so that no half of a secret stays when one begins with another.
  const bare = secrets.reduce((shown, secret) => shown.replaceAll(secret, MARK), text);
  return redact(bare);
};

/** Words of a command line that may be shown. */
export const maskedArgs = (args: readonly string[], secrets: readonly string[]): string[] =>
  args.map((arg, index) =>
    SECRET_OPTION.test(args[index - 1] ?? '') ? MARK : masked(arg, secrets),
  );

/** An address that may be shown: values of `env` and `headers` are not, whatever they are. */
export const maskedAddress = (
  address: UpstreamAddress,
  secrets: readonly string[],
): UpstreamAddress => {
  const hidden = (values: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.keys(values).map((name) => [name, MARK]));
  if (address.kind !== 'stdio') {
    return { ...address, url: masked(address.url, secrets), headers: hidden(address.headers) };
  }
  return {
    ...address,
    command: masked(address.command, secrets),
    args: maskedArgs(address.args, secrets),
    env: hidden(address.env),
    ...(address.cwd !== undefined && { cwd: masked(address.cwd, secrets) }),
  };
};
