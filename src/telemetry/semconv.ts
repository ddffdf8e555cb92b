/**
 * @module
 * Constants of the OpenTelemetry conventions that we follow, copied as their package advises
 * (`@opentelemetry/semantic-conventions` exports the MCP ones as incubating and deprecated,
 * since they moved to a repository that has no package yet).
 *
 * Sources: MCP conventions, status Development, open-telemetry/semantic-conventions-genai
 * docs/gen-ai/mcp.md (spans, metrics, propagation); general attributes of semconv 1.44.0.
 */

// mcp.md, "Spans" and "Metrics"
export const ATTR_MCP_METHOD_NAME = 'mcp.method.name';
export const ATTR_MCP_PROTOCOL_VERSION = 'mcp.protocol.version';
export const ATTR_MCP_RESOURCE_URI = 'mcp.resource.uri';
export const ATTR_MCP_SESSION_ID = 'mcp.session.id';
export const ATTR_JSONRPC_REQUEST_ID = 'jsonrpc.request.id';
export const ATTR_RPC_RESPONSE_STATUS_CODE = 'rpc.response.status_code';
export const METRIC_MCP_CLIENT_OPERATION_DURATION = 'mcp.client.operation.duration';
export const METRIC_MCP_CLIENT_SESSION_DURATION = 'mcp.client.session.duration';
export const METRIC_MCP_SERVER_OPERATION_DURATION = 'mcp.server.operation.duration';
export const METRIC_MCP_SERVER_SESSION_DURATION = 'mcp.server.session.duration';

/** Advised ExplicitBucketBoundaries of all four durations, in seconds (mcp.md, "Metrics"). */
export const OPERATION_DURATION_BUCKETS: readonly number[] = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300,
];

/** `error.type` of a tool call whose result has `isError: true` (mcp.md, "Spans"). */
export const ERROR_TYPE_TOOL_ERROR = 'tool_error';

// gen-ai registry
export const ATTR_GEN_AI_OPERATION_NAME = 'gen_ai.operation.name';
export const ATTR_GEN_AI_PROMPT_NAME = 'gen_ai.prompt.name';
export const ATTR_GEN_AI_TOOL_NAME = 'gen_ai.tool.name';
/** `gen_ai.operation.name` of tool calls; SHOULD NOT be set on anything else. */
export const GEN_AI_OPERATION_EXECUTE_TOOL = 'execute_tool';

// general registry, stable
export const ATTR_CLIENT_ADDRESS = 'client.address';
export const ATTR_CLIENT_PORT = 'client.port';
export const ATTR_ERROR_TYPE = 'error.type';
export const ATTR_HTTP_REQUEST_METHOD = 'http.request.method';
export const ATTR_HTTP_RESPONSE_STATUS_CODE = 'http.response.status_code';
export const ATTR_NETWORK_PROTOCOL_NAME = 'network.protocol.name';
export const ATTR_NETWORK_TRANSPORT = 'network.transport';
export const ATTR_SERVER_ADDRESS = 'server.address';
export const ATTR_SERVER_PORT = 'server.port';
export const ATTR_URL_FULL = 'url.full';
export const ATTR_URL_SCHEME = 'url.scheme';
export const ATTR_SERVICE_INSTANCE_ID = 'service.instance.id';
export const ATTR_SERVICE_NAME = 'service.name';
export const ATTR_SERVICE_VERSION = 'service.version';

// HTTP conventions, stable (docs/http/http-metrics.md)
export const METRIC_HTTP_CLIENT_REQUEST_DURATION = 'http.client.request.duration';
/** Advised ExplicitBucketBoundaries of it, in seconds. */
export const HTTP_DURATION_BUCKETS: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];

/**
 * Stands in for a name that a peer made up (an unknown tool, prompt or method): one series
 * instead of one for every name it can think of.
 */
export const VALUE_OTHER = '_other';
