/**
 * @module
 * The part of the configuration file that is for the HTTP door: checked by the schemas of the
 * door and of its authentication, and what is wrong told as for policies, with the path and what
 * is allowed.
 */
import { type AuthSettings, authSettingsSchema } from './mcp/auth-settings.ts';
import { checkSettings, describeSettings } from './mcp/settings-problems.ts';
import { type HttpSettings, httpSettingsSchema } from './mcp/transports/http-settings.ts';
import { isObject } from './resilience/settings.ts';

/** Settings of the door, and of who may call. */
export interface HttpConfig extends HttpSettings {
  /** Absent: whoever can reach the door. */
  readonly auth?: AuthSettings;
}

/** Every setting of the door, those of groups behind the group. */
export const httpSettings = describeSettings(httpSettingsSchema);

/** Reads the settings of the door; what is wrong is added to `problems`. */
export const readHttp = (value: unknown, problems: string[]): HttpConfig => {
  if (value === undefined) return {};
  if (!isObject(value)) {
    checkSettings(httpSettingsSchema, value, 'http', problems);
    return {};
  }
  const { auth, ...http } = value;
  const isRight = checkSettings(httpSettingsSchema, http, 'http', problems);
  if (auth === undefined) return isRight ? (http as HttpConfig) : {};
  const isKnown = checkSettings(authSettingsSchema, auth, 'http.auth', problems);
  return isRight && isKnown ? (value as HttpConfig) : {};
};
