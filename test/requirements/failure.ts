import type { Requirement } from '../requirements.ts';

const design = 'design section 3, Failure';

/** The failure taxonomy and its texts. */
export const requirements = {
  'failure.invalid-request': {
    promise: 'A request that the peer refuses as invalid (-32602, 400) is not retryable.',
    source: 'case M23: p-retry 9 retries JSON-RPC -32602',
  },
  L33: {
    promise: 'A classifier in front turns throttling inside a payload into a throttled failure.',
    source: 'panoramicdata/Meraki.Api#389',
  },
  'failure.never-throws': {
    promise: 'Whatever is thrown becomes a complete failure, and nothing makes classify throw.',
    source: design,
  },
  'failure.invariants': {
    promise: 'What the caller must mend, and what is permanent, is not retryable.',
    source: design,
  },
  'failure.network-errors': {
    promise: 'Real failures of fetch are network failures, with the delivery that they allow.',
    source: design,
  },
  'failure.delivery': {
    promise: 'The system call and the phase decide whether the request can have been sent.',
    source: 'design section 5',
  },
  'failure.programming-errors': {
    promise: 'Programming errors are internal and permanent, and never weigh on a breaker.',
    source: design,
  },
  'failure.cause-chain': {
    promise: 'The causes of an error are followed, to a bound and through cycles.',
    source: design,
  },
  'failure.aggregate': {
    promise: 'Of several errors the most telling counts, sent if one of them may have been.',
    source: 'RFC 8305; design section 3, Failure',
  },
  'failure.cancel-is-not-timeout': {
    promise: 'An abort by the caller is cancelled, and a timeout signal is a timeout.',
    source: 'design section 3, Cancel is not timeout',
  },
  'failure.http-statuses': {
    promise: 'Every HTTP status has its meaning, in responses and in the errors of clients.',
    source: 'RFC 9110 section 15',
  },
  'failure.retry-after': {
    promise: 'Retry-After is read as seconds and as each form of HTTP-date, and garbage is not.',
    source: 'RFC 9110 sections 10.2.3 and 5.6.7',
  },
  'failure.json-rpc': {
    promise: 'Errors of the MCP SDK mean what happened, not what their code alone suggests.',
    source: 'JSON-RPC 2.0 section 5.1; SDK 1.x reuses -32000 and -32001',
  },
  'failure.tool-results': {
    promise: 'A tool result with isError never weighs as infrastructure.',
    source: 'NousResearch/hermes-agent#11113, #47851',
  },
  'failure.revived': {
    promise: 'A failure that a peer sends along is taken over, with its contradictions mended.',
    source: 'design section 5',
  },
  'failure.validation': {
    promise: 'Errors of zod 3 and 4 are invalid input and name the fields.',
    source: design,
  },
  'failure.invalid-json': {
    promise: 'Text that is not JSON is a bad answer, and other syntax errors are defects.',
    source: design,
  },
  'failure.custom-classifier': {
    promise:
      'The user’s classifier decides first, and one that throws or answers rubbish does not.',
    source: design,
  },
  'failure.no-secrets': {
    promise: 'No message of a failure holds a credential, a URL query or userinfo.',
    source: 'design section 3, Failure; OWASP logging cheat sheet',
  },
  'failure.plain-data': {
    promise: 'A failure as JSON has neither its cause nor undefined fields.',
    source: 'design section 5',
  },
  'failure.documented': {
    promise: 'docs/failures.md lists every code with what the program does.',
    source: 'ours',
  },
  'redact.secrets': {
    promise: 'Credentials of the common shapes are masked, and ordinary sentences are not.',
    source: 'ours',
  },
  'redact.idempotent': {
    promise: 'Redacting twice changes nothing.',
    source: 'ours',
  },
  'redact.linear': {
    promise: 'Redaction of a hostile text takes time in proportion to its length.',
    source: 'OWASP, regular expression denial of service',
  },
  'describe.every-code': {
    promise: 'Every code has a text in every language, which begins with the code.',
    source: design,
  },
  'describe.languages': {
    promise: 'MCP_RESILIENCE_LANG chooses the language; an unknown one is English.',
    source: 'ours',
  },
  'describe.seconds': {
    promise: 'The text says whether to retry, and after how many seconds, rounded up.',
    source: 'RFC 9110 section 10.2.3',
  },
  'describe.outcome-unknown': {
    promise: 'An unknown outcome may have been executed and is to be verified first.',
    source: 'design section 5',
  },
  'describe.business-errors': {
    promise: 'The text of a business error does not claim that the server is unreachable.',
    source: 'NousResearch/hermes-agent#11113',
  },
} as const satisfies Record<string, Requirement>;
