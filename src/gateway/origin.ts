/**
 * @module
 * Where the URL of an upstream leads.
 */

/** Name or address, of IPv6 without brackets. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

/** Port, of the scheme where the URL names none. */
export const portOf = ({ port, protocol }: URL): number =>
  Number(port || (protocol === 'https:' ? 443 : 80));
