/**
 * @module
 * Failures out of the `code` of Node's, undici's, axios's and the MCP SDK's errors.
 */

import { createFailure, type FailureDetails, failureProfiles } from './failure-codes.ts';
import type { Delivery, Failure, FailureCode } from './failure-model.ts';
import { peerOf, readNumber, readText, sentence } from './inspect.ts';

type Meaning = readonly [code: FailureCode, details?: FailureDetails];

const PERMANENT: FailureDetails = { severity: 'permanent', retryable: false };
const CLOSED: Meaning = ['UPSTREAM_UNAVAILABLE', { delivery: 'not_sent' }];
const BUSY: Meaning = ['UPSTREAM_UNAVAILABLE', { delivery: 'refused' }];
const DEFECT: Meaning = ['INTERNAL_ERROR', { delivery: 'not_sent' }];

/** Codes by exact name. */
const CODES: Readonly<Record<string, Meaning>> = {
  // Node: sockets (errno(3)) and name resolution (getaddrinfo(3))
  ECONNREFUSED: ['CONNECTION_REFUSED'],
  ECONNRESET: ['CONNECTION_RESET'],
  ECONNABORTED: ['CONNECTION_RESET'],
  EPIPE: ['CONNECTION_RESET'],
  ENOTCONN: ['CONNECTION_RESET'],
  ETIMEDOUT: ['UPSTREAM_TIMEOUT'],
  EHOSTUNREACH: ['HOST_UNREACHABLE'],
  EHOSTDOWN: ['HOST_UNREACHABLE'],
  ENETUNREACH: ['HOST_UNREACHABLE'],
  ENETDOWN: ['HOST_UNREACHABLE'],
  EADDRNOTAVAIL: ['NETWORK_ERROR', { delivery: 'not_sent' }],
  ENOTFOUND: ['DNS_FAILURE'],
  EPROTO: ['TLS_FAILURE'],
  // Node: streams, sockets and HTTP/2
  ERR_STREAM_PREMATURE_CLOSE: ['CONNECTION_RESET'],
  ERR_STREAM_DESTROYED: ['CONNECTION_RESET'],
  ERR_STREAM_WRITE_AFTER_END: ['CONNECTION_RESET'],
  ERR_SOCKET_CLOSED: ['CONNECTION_RESET'],
  ERR_SOCKET_CLOSED_BEFORE_CONNECTION: ['CONNECTION_RESET', { delivery: 'not_sent' }],
  ERR_SOCKET_CONNECTION_TIMEOUT: ['CONNECT_TIMEOUT'],
  ERR_TLS_HANDSHAKE_TIMEOUT: ['CONNECT_TIMEOUT'],
  ERR_HTTP_REQUEST_TIMEOUT: ['UPSTREAM_TIMEOUT'],
  ERR_HTTP2_GOAWAY_SESSION: ['CONNECTION_RESET'],
  ERR_HTTP2_SESSION_ERROR: ['CONNECTION_RESET'],
  ERR_HTTP2_STREAM_ERROR: ['CONNECTION_RESET'],
  ERR_HTTP2_STREAM_CANCEL: ['CONNECTION_RESET'],
  ERR_ENCODING_INVALID_ENCODED_DATA: ['UPSTREAM_INVALID_RESPONSE'],
  // zlib, on a compressed body
  Z_DATA_ERROR: ['UPSTREAM_INVALID_RESPONSE'],
  Z_BUF_ERROR: ['UPSTREAM_INVALID_RESPONSE'],
  // undici
  UND_ERR_CONNECT_TIMEOUT: ['CONNECT_TIMEOUT'],
  UND_ERR_HEADERS_TIMEOUT: ['UPSTREAM_TIMEOUT'],
  UND_ERR_BODY_TIMEOUT: ['UPSTREAM_TIMEOUT'],
  UND_ERR_SOCKET: ['CONNECTION_RESET'],
  UND_ERR_CLOSED: ['NETWORK_ERROR', { delivery: 'not_sent' }],
  UND_ERR_PRX_TLS: ['TLS_FAILURE'],
  UND_ERR_RESPONSE: ['UPSTREAM_ERROR'],
  UND_ERR_RESPONSE_STATUS_CODE: ['UPSTREAM_ERROR'],
  UND_ERR_HEADERS_OVERFLOW: ['UPSTREAM_INVALID_RESPONSE'],
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: ['UPSTREAM_INVALID_RESPONSE'],
  UND_ERR_RES_EXCEEDED_MAX_SIZE: ['UPSTREAM_INVALID_RESPONSE', PERMANENT],
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: DEFECT,
  UND_ERR_INVALID_ARG: DEFECT,
  UND_ERR_INVALID_RETURN_VALUE: DEFECT,
  UND_ERR_NOT_SUPPORTED: DEFECT,
  // axios
  ERR_NETWORK: ['NETWORK_ERROR'],
  // MCP SDK 2.x: SdkErrorCode
  NOT_CONNECTED: CLOSED,
  NOT_INITIALIZED: CLOSED,
  CONNECTION_CLOSED: ['CONNECTION_RESET'],
  REQUEST_TIMEOUT: ['UPSTREAM_TIMEOUT'],
  SEND_FAILED: ['NETWORK_ERROR'],
  INVALID_RESULT: ['UPSTREAM_INVALID_RESPONSE'],
  // the operating system, for tools that work on files
  ENOENT: ['NOT_FOUND'],
  ENOTDIR: ['NOT_FOUND'],
  EACCES: ['AUTH_FAILED'],
  EPERM: ['AUTH_FAILED'],
  EEXIST: ['REQUEST_REJECTED'],
  EISDIR: ['REQUEST_REJECTED'],
  ENOTEMPTY: ['REQUEST_REJECTED'],
  ENAMETOOLONG: ['REQUEST_REJECTED'],
  ELOOP: ['REQUEST_REJECTED'],
  EFBIG: ['REQUEST_REJECTED'],
  EBUSY: BUSY,
  EAGAIN: BUSY,
  EMFILE: BUSY,
  ENFILE: BUSY,
  ENOBUFS: BUSY,
  EIO: ['UPSTREAM_ERROR'],
  ENOSPC: ['UPSTREAM_ERROR', PERMANENT],
  EDQUOT: ['UPSTREAM_ERROR', PERMANENT],
  EROFS: ['UPSTREAM_ERROR', PERMANENT],
};

/** Codes by how they begin; the first that fits counts. */
const PREFIXES: readonly (readonly [prefix: string, meaning: Meaning])[] = [
  ['EAI_', ['DNS_FAILURE']],
  // The record layer speaks of data on its way, not of the handshake.
  ['ERR_SSL_DECRYPTION_FAILED', ['CONNECTION_RESET']],
  ['ERR_SSL_', ['TLS_FAILURE']],
  ['ERR_TLS_', ['TLS_FAILURE']],
  ['CERT_', ['TLS_FAILURE']],
  ['DEPTH_ZERO_', ['TLS_FAILURE']],
  ['SELF_SIGNED_', ['TLS_FAILURE']],
  ['UNABLE_TO_VERIFY_LEAF', ['TLS_FAILURE']],
  ['UNABLE_TO_GET_ISSUER', ['TLS_FAILURE']],
  ['UNABLE_TO_GET_CRL', ['TLS_FAILURE']],
  ['HOSTNAME_MISMATCH', ['TLS_FAILURE']],
  ['INVALID_CA', ['TLS_FAILURE']],
  ['INVALID_PURPOSE', ['TLS_FAILURE']],
  // Node's parser of HTTP/1.
  ['HPE_', ['UPSTREAM_INVALID_RESPONSE']],
  ['UND_ERR_', ['NETWORK_ERROR']],
];

const meaningOf = (code: string, error: object): Meaning | undefined => {
  const syscall = readText(error, 'syscall') ?? '';
  const message = readText(error, 'message') ?? '';
  if (/^(?:getaddrinfo|getnameinfo|query|getHostBy)/.test(syscall)) return ['DNS_FAILURE'];
  // A program that is not there, or may not be run, will not be there in a second either.
  if (syscall.startsWith('spawn'))
    return ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM'].includes(code)
      ? ['UPSTREAM_UNAVAILABLE', { ...PERMANENT, delivery: 'not_sent' }]
      : CLOSED;
  if (syscall === 'connect') {
    if (code === 'ETIMEDOUT') return ['CONNECT_TIMEOUT'];
    // The path of a socket that is not there, or that we may not open.
    if (code === 'ENOENT') return ['CONNECTION_REFUSED'];
    if (code === 'EACCES' || code === 'EPERM') return ['CONNECTION_REFUSED', PERMANENT];
  }
  // Only a suggestion, as every abort: see `recogniseName`.
  if (code === 'UND_ERR_ABORTED') return undefined;
  // axios says ECONNABORTED for a timeout of its own.
  if (code === 'ECONNABORTED' && message.includes('timeout')) return ['UPSTREAM_TIMEOUT'];
  // Node says ECONNRESET when the peer leaves during the TLS handshake.
  if (code === 'ECONNRESET' && message.includes('before secure TLS connection'))
    return ['CONNECTION_RESET', { delivery: 'not_sent' }];
  // RFC 9113 section 8.7: a refused stream was not processed.
  if (code === 'ERR_HTTP2_STREAM_ERROR' && message.includes('REFUSED_STREAM'))
    return ['CONNECTION_RESET', { delivery: 'refused' }];
  return Object.hasOwn(CODES, code)
    ? CODES[code]
    : PREFIXES.find(([prefix]) => code.startsWith(prefix))?.[1];
};

/** The phase that the system call names outweighs what the code says as a rule. */
const deliveryOf = (syscall: string | undefined, usual: Delivery): Delivery => {
  if (syscall === 'connect') return 'not_sent';
  if (usual === 'not_sent' && (syscall === 'read' || syscall === 'write')) return 'lost';
  return usual;
};

const what = (code: FailureCode, delivery: Delivery, error: object, name: string): string => {
  const peer = peerOf(error);
  const message = readText(error, 'message');
  switch (code) {
    case 'CONNECTION_REFUSED':
      return `The connection${peer && ` to${peer}`} was refused (${name}).`;
    case 'CONNECTION_RESET': {
      const when = delivery === 'not_sent' ? 'the request was sent' : 'the answer was complete';
      return `The connection${peer && ` to${peer}`} was lost before ${when} (${name}).`;
    }
    case 'CONNECT_TIMEOUT':
      return `No connection${peer && ` to${peer}`} could be made in time (${name}).`;
    case 'DNS_FAILURE':
      return `The host name${peer} could not be resolved (${name}).`;
    case 'HOST_UNREACHABLE':
      return `There is no route${peer && ` to${peer}`} (${name}).`;
    case 'UPSTREAM_TIMEOUT': {
      const waited = readNumber(error, 'timeout');
      return `The upstream${peer} did not answer in time${waited === undefined ? '' : ` (${waited} ms)`} (${name}).`;
    }
    case 'TLS_FAILURE':
      // OpenSSL's own text is a file and a line of its source.
      return name.startsWith('ERR_SSL_')
        ? `No secure connection${peer && ` to${peer}`} could be made (${name}).`
        : sentence(`No secure connection${peer && ` to${peer}`} could be made (${name})`, message);
    case 'UPSTREAM_INVALID_RESPONSE':
      return sentence(`The upstream's answer could not be read (${name})`, message);
    case 'INTERNAL_ERROR':
      return sentence('The tool has a defect', message);
    default:
      return sentence(`The call failed (${name})`, message);
  }
};

/** A failure out of the error's `code`, or undefined when it has none that is known. */
export const recogniseCode = (error: object): Failure | undefined => {
  const name = readText(error, 'code') ?? '';
  const meaning = /^[A-Z][A-Z0-9_]{1,63}$/.test(name) ? meaningOf(name, error) : undefined;
  if (meaning === undefined) {
    // undici's HTTP/1 parser gives its errors a name and no code.
    if (readText(error, 'name') !== 'HTTPParserError') return undefined;
    return createFailure('UPSTREAM_INVALID_RESPONSE', {
      message: sentence("The upstream's answer could not be read", readText(error, 'message')),
      cause: error,
    });
  }
  const [code, details] = meaning;
  const usual = details?.delivery ?? failureProfiles[code].delivery;
  const delivery = deliveryOf(readText(error, 'syscall'), usual);
  return createFailure(code, {
    ...details,
    delivery,
    message: what(code, delivery, error, name),
    cause: error,
  });
};
