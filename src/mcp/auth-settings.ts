/**
 * @module
 * Settings of who may call the HTTP door. They hold no secret: a static token stands here as the
 * name of a variable or as a digest, so that the file can be shown to anybody.
 */
import { z } from 'zod';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Whoever reads or changes keys and tokens on their way is who they want to be. */
export const isSafeUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, hash } = new URL(text);
  const safe = protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname));
  return safe && username === '' && password === '' && hash === '';
};

/** RFC 8414, section 2: an issuer whose metadata can be found. */
const hasMetadata = (issuer: string): boolean => isSafeUrl(issuer) && !issuer.includes('?');

const safeUrl = (what: string) =>
  z
    .string()
    .refine(isSafeUrl, `must be ${what}, without user name, password and "#"`)
    .describe(`${what}, without user name, password and "#"`);

const HTTPS = 'an https URL (http for this machine only)';

/** RFC 6749, section 3.3. */
const scope = z
  .string()
  .regex(/^[\x21\x23-\x5B\x5D-\x7E]+$/)
  .describe('a scope: a text without spaces, quotes and backslashes');

const name = (what: string) =>
  z
    .string()
    .regex(/^[\x20-\x7E]{1,200}$/)
    .describe(`${what}: a text of 1 to 200 printable ASCII characters`);

/** Signatures with a public key. With a shared secret, whoever checks tokens could make them. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;

const ms = (min: number, max: number, fallback: number) =>
  z.int().min(min).max(max).default(fallback);

const jwtSchema = z
  .strictObject({
    /** Who must have issued tokens: the claim `iss`, letter by letter. */
    issuer: name('the issuer of tokens, as in their claim "iss"'),
    /** Where the issuer publishes its keys (its `jwks_uri`). Default: its metadata say. */
    jwksUri: safeUrl(HTTPS).optional(),
    /** Instead: a file with its keys, read again when a token names one that is not in it. */
    jwksFile: z.string().min(1).describe('the path of a file with a JWK Set').optional(),
    /** Whom tokens must be for: one of these must be in the claim `aud`. Default: `resource`. */
    audience: z.array(name('an audience')).min(1).optional(),
    /** Algorithms of signatures that are taken. Default: all that use a public key. */
    algorithms: z
      .array(z.enum(ALGORITHMS))
      .min(1)
      .default([...ALGORITHMS]),
    /** Milliseconds that the clocks of the issuer and of this machine may differ. */
    clockTolerance: ms(0, 300_000, 5_000),
    /** The claim that says who calls: sessions, caches and limits are kept apart by it. */
    principalClaim: name('the name of a claim').default('sub'),
    /** Milliseconds for one fetch of the keys. */
    timeout: ms(1, 60_000, 5_000),
    /** Milliseconds after a fetch in which a key that is not known does not cause another. */
    cooldown: ms(0, 3_600_000, 30_000),
    /** Milliseconds after which keys are fetched anew: how long a withdrawn key may live on. */
    maxAge: ms(1_000, 86_400_000, 600_000),
    /** Milliseconds beyond `maxAge` in which the old keys hold while new ones cannot be fetched. */
    staleIfError: ms(0, 86_400_000, 3_600_000),
  })
  .refine(({ jwksUri, jwksFile }) => jwksUri === undefined || jwksFile === undefined, {
    message: 'must not have both jwksUri and jwksFile',
  })
  .refine(
    ({ issuer, jwksUri, jwksFile }) =>
      jwksUri !== undefined || jwksFile !== undefined || hasMetadata(issuer),
    {
      message: `must be ${HTTPS}, without user name, password, "?" and "#", where neither jwksUri nor jwksFile is given`,
      path: ['issuer'],
    },
  );

const tokenSchema = z
  .strictObject({
    /** Whose token it is: sessions, caches and limits are kept apart by it. */
    principal: name('a name for whoever has the token'),
    /** The variable of the environment that holds the token, of at least 16 characters. */
    env: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
      .describe('the name of a variable')
      .optional(),
    /** Instead: the SHA-256 digest of the token, in hexadecimal. */
    sha256: z
      .string()
      .regex(/^[0-9a-fA-F]{64}$/)
      .describe('a SHA-256 digest: 64 hexadecimal digits')
      .optional(),
    /** What the token is good for. Default: everything. */
    scopes: z.array(scope).optional(),
  })
  .refine(({ env, sha256 }) => (env === undefined) !== (sha256 === undefined), {
    message: 'must have exactly one of env and sha256',
  });

/** Validates the settings and fills in what is absent. */
export const authSettingsSchema = z
  .strictObject({
    /** The URL by which clients know this server: tokens must be made for it (RFC 8707). */
    resource: safeUrl(HTTPS).optional(),
    /** Where clients get tokens. Default: the issuer. */
    authorizationServers: z.array(safeUrl(HTTPS)).min(1).optional(),
    /** What a token must be good for, all of it. */
    scopes: z.array(scope).default([]),
    /** Tokens that an authorization server signed. */
    jwt: jwtSchema.optional(),
    /** Tokens that never change, for small set-ups. */
    tokens: z.array(tokenSchema).default([]),
  })
  .refine(({ jwt, tokens }) => jwt !== undefined || tokens.length > 0, {
    message: 'must have jwt, tokens or both: without any nobody could call',
  })
  .refine(({ jwt, resource }) => jwt === undefined || resource !== undefined, {
    message: 'must be given with jwt: the URL by which clients know this server',
    path: ['resource'],
  })
  .refine(
    ({ jwt, authorizationServers }) =>
      jwt === undefined || authorizationServers !== undefined || isSafeUrl(jwt.issuer),
    {
      message: 'must be given when the issuer of tokens is no https URL',
      path: ['authorizationServers'],
    },
  )
  .refine(
    ({ tokens }) => new Set(tokens.map(({ principal }) => principal)).size === tokens.length,
    {
      message: 'must not name a principal twice',
      path: ['tokens'],
    },
  );

/** What the door can be told about who may call. */
export type AuthSettings = z.input<typeof authSettingsSchema>;

/** With every default filled in. */
export type ResolvedAuthSettings = z.output<typeof authSettingsSchema>;

/** Settings of tokens that an authorization server signed, with every default filled in. */
export type JwtSettings = NonNullable<ResolvedAuthSettings['jwt']>;
