/**
 * @module
 * From the settings of who may call to the authentication of a door.
 */
import { type Authenticator, type AuthenticatorOptions, createAuthenticator } from '../mcp/auth.ts';
import type { AuthSettings } from '../mcp/auth-settings.ts';
import { SettingsError } from '../resilience/settings.ts';
import { ConfigError } from './config-text.ts';

/**
 * The authentication that the settings of a door ask for; undefined where they ask for none.
 *
 * @param where the settings stand, for errors
 * @throws ConfigError for what shows only now: a variable without a token, an unusable key file
 */
export const authenticationOf = (
  auth: AuthSettings | undefined,
  where: string,
  options: AuthenticatorOptions,
): Authenticator | undefined => {
  if (auth === undefined) return undefined;
  try {
    return createAuthenticator(auth, options);
  } catch (error) {
    throw error instanceof SettingsError ? new ConfigError(where, error.problems) : error;
  }
};
