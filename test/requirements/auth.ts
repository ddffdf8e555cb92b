import type { Requirement } from '../requirements.ts';

/** Who may call through the HTTP door. */
export const requirements = {
  'auth.jwt': {
    promise:
      'a token that the issuer signed for this server and that has not ended is taken, and no other is',
    source: '2025-11-25 basic/authorization, Token Handling; RFC 7519, RFC 8707, RFC 8725',
  },
  'auth.silent': {
    promise: 'every token that is not taken gets the same answer, which does not say why',
    source: 'RFC 6750, section 3.1',
  },
  'auth.challenge': {
    promise:
      'a refusal says with WWW-Authenticate what is missing and where the metadata is, and carries no error code when no token was sent',
    source: 'RFC 6750, section 3; RFC 9728, section 5.1',
  },
  'auth.metadata': {
    promise:
      'the protected resource metadata is at the root and at the path of the endpoint, and the SDK client finds it from the 401 alone',
    source: 'RFC 9728, section 3; 2025-11-25 basic/authorization',
  },
  'auth.scopes': {
    promise:
      'a token without a scope that is required gets 403 insufficient_scope with all of them',
    source: 'RFC 6750, section 3.1; 2025-11-25 basic/authorization, Scope Challenge',
  },
  'auth.rotation': {
    promise:
      'a token that names an unknown key causes one fetch of the keys for all who wait, and none within the cooldown',
    source: 'issue 6, Security',
  },
  'auth.keys-down': {
    promise:
      'when the keys cannot be had the answer is 503 with Retry-After and never 401, the endpoint is spared by a breaker, and keys that were had before hold on',
    source: 'issue 6, Security; design 3',
  },
  'auth.discovery': {
    promise:
      'with the issuer alone its keys are found by its metadata, asked for once for all who wait and again when they are old or the keys have moved',
    source: 'RFC 8414, section 3; OpenID Connect Discovery 1.0, section 4',
  },
  'auth.discovery-exact': {
    promise:
      'metadata of another issuer, or with keys that anybody could change on their way, are not used: the answer is 503, never 401, and a line says why',
    source: 'RFC 8414, section 3.3',
  },
  'auth.no-kid': {
    promise: 'a token that does not name its key is checked with those that fit, up to 16',
    source: 'RFC 7515, section 4.1.4: kid is optional',
  },
  'auth.key-file': {
    promise: 'keys of a file are read again when a token names one that is not in it',
    source: 'issue 6, Security',
  },
  'auth.static': {
    promise:
      'a static token is its principal’s, whether it stands in a variable or as a digest, and is good for the scopes it names',
    source: 'issue 6, Security',
  },
  'auth.constant-time': {
    promise:
      'a token is compared with every static one by digest and in constant time, whichever it is',
    source: 'issue 6, Security',
  },
  'auth.header-only': {
    promise: 'a token in the URL, or more than one, is refused whatever it is good for',
    source: 'RFC 6750, sections 2 and 3.1; RFC 9700, section 4.3.2',
  },
  'auth.session-bound': {
    promise: 'a session can be used, listened to and ended by its own principal alone',
    source: '2025-11-25 basic/security_best_practices, Session Hijacking',
  },
  'auth.limit': {
    promise:
      'the rate limit counts per principal once it is known who calls, and per address for those who fail',
    source: 'issue 6, Security',
  },
  'auth.not-handed-on': {
    promise: 'no handler sees the token, and no upstream request carries it',
    source: '2025-11-25 basic/authorization, Access Token Privilege Restriction',
  },
  'auth.not-recorded': {
    promise: 'no token that was sent, good or bad, is in stdout, stderr, spans, logs or metrics',
    source: 'issue 6, Security',
  },
  'auth.gateway': {
    promise:
      'the gateway calls its servers with what is configured for them, whatever token its client sent',
    source: 'issue 6, Security; 2025-11-25 basic/security_best_practices, Token Passthrough',
  },
  'auth.settings': {
    promise:
      'settings that would let anybody in, or nobody, are refused with their path, at the start and all at once',
    source: 'design 2',
  },
} as const satisfies Record<string, Requirement>;
