/**
 * @module
 * What is said in Chinese (simplified).
 */

import type { Texts } from './texts.ts';

const OTHER_SOURCE = '如果有其他工具或数据来源能提供同样的信息，请改用它们。';
const GO_ON = '先继续处理任务中不依赖该工具的部分。';

/** Chinese. */
export const chinese: Texts = {
  codes: {
    CONNECTION_REFUSED: {
      what: '连接被对方拒绝。',
      suggestion: '服务可能已停止或正在重启。如果再次被拒绝，请告知用户该服务没有运行。',
      fallback: OTHER_SOURCE,
    },
    CONNECTION_RESET: {
      what: '尚未收到完整的应答，连接就断开了。',
      suggestion: '如果这次调用会修改数据，请先确认修改是否已生效，再决定要不要重复执行。',
      fallback: OTHER_SOURCE,
    },
    CONNECT_TIMEOUT: {
      what: '未能在限定时间内建立连接。',
      suggestion: '如果再次出现，请告知用户该服务目前无法接受连接。',
      fallback: OTHER_SOURCE,
    },
    DNS_FAILURE: {
      what: '主机名无法解析。',
      suggestion: '如果主机名是你填写的，请检查拼写；否则请告知用户域名解析失败。',
      fallback: OTHER_SOURCE,
    },
    HOST_UNREACHABLE: {
      what: '没有通往目标主机的网络路由。',
      suggestion: '请告知用户：到该服务的网络不通。',
      fallback: OTHER_SOURCE,
    },
    TLS_FAILURE: {
      what: '无法建立安全连接。',
      suggestion: '请告知用户需要修复该服务的证书或 TLS 配置；反复调用解决不了这个问题。',
      fallback: OTHER_SOURCE,
    },
    NETWORK_ERROR: {
      what: '调用过程中网络出错。',
      suggestion: '如果这次调用会修改数据，请先确认修改是否已生效，再决定要不要重复执行。',
      fallback: OTHER_SOURCE,
    },
    UPSTREAM_TIMEOUT: {
      what: '上游服务没有及时应答。',
      suggestion: '请减少单次请求的数据量：缩小范围、减少条目，或让查询更具体。',
      fallback: OTHER_SOURCE,
    },
    UPSTREAM_UNAVAILABLE: {
      what: '上游服务暂时不可用。',
      suggestion: '如果届时仍不可用，请告知用户，并跳过它继续工作。',
      fallback: OTHER_SOURCE,
    },
    UPSTREAM_ERROR: {
      what: '上游服务在处理请求时出错。',
      suggestion: '如果再次出错，请尝试更简单的参数，或把故障情况告知用户。',
      fallback: OTHER_SOURCE,
    },
    UPSTREAM_INVALID_RESPONSE: {
      what: '上游服务的应答无法读取。',
      suggestion: '应答已到达但内容损坏。如果这次调用会修改数据，请先确认修改是否已生效。',
      fallback: OTHER_SOURCE,
    },
    RATE_LIMITED: {
      what: '请求过于频繁，上游服务拒绝了这次请求。',
      suggestion: '请减少调用次数：合并请求，或只查询真正需要的内容。',
      fallback: GO_ON,
    },
    AUTH_FAILED: {
      what: '上游服务不接受当前的凭据或权限。',
      suggestion: '请告知用户缺少访问权限或授权已过期。不要在对话中索要密码或密钥。',
    },
    NOT_FOUND: {
      what: '请求的对象不存在。',
      suggestion: '请核对名称或 ID，或先列出现有的对象，再用正确的值调用。',
    },
    REQUEST_REJECTED: {
      what: '上游服务拒绝了这次请求。',
      suggestion: '请阅读拒绝原因，相应修改参数后再调用。',
      retry: '不要原样重复请求，否则还会被拒绝。',
    },
    METHOD_NOT_FOUND: {
      what: '上游服务不支持这个方法。',
      suggestion: '请先列出可用的工具，再从中选用。',
    },
    TOOL_ERROR: {
      what: '工具已执行，并报告了一个错误。',
      suggestion: '请阅读工具给出的说明，修改参数或换一种做法。',
      retry: '不要用相同的参数重复调用：工具本身工作正常，只是不接受这次请求。',
    },
    OUTCOME_UNKNOWN: {
      what: '请求发出后连接中断，执行结果未知。',
      suggestion: '请用其他调用查看当前状态，确认没有生效之后才可以重新执行。',
      retry: '该操作可能已经执行。重复之前务必先核实。',
    },
    CIRCUIT_OPEN: {
      what: '由于近期的调用接连失败，对该服务的调用已暂停。',
      suggestion: '在此期间不要调用它：请求会被直接拒绝，不会发送出去。',
      fallback: OTHER_SOURCE,
    },
    RATE_LIMIT_EXCEEDED: {
      what: '本地设置的调用额度已用完，请求没有发出。',
      suggestion: '请减少调用次数：合并请求，或只查询真正需要的内容。',
      fallback: GO_ON,
    },
    BULKHEAD_FULL: {
      what: '对该服务的并发调用过多，请求没有发出。',
      suggestion: '请等其他调用结束，并减少同时进行的调用数量。',
      fallback: GO_ON,
    },
    TIMEOUT: {
      what: '调用超过了允许的时间。',
      suggestion: '请减少单次请求的数据量：缩小范围、减少条目，或让查询更具体。',
      fallback: OTHER_SOURCE,
    },
    DEADLINE_EXCEEDED: {
      what: '整个调用的总时限已到。',
      suggestion: '请把工作拆成更小的调用，或告知用户该操作耗时过长。',
      fallback: OTHER_SOURCE,
    },
    CANCELLED: {
      what: '调用已被调用方取消。',
      suggestion: '请询问用户接下来怎么做。',
      retry: '不要自行重试：这次调用是有人主动取消的。',
    },
    INVALID_INPUT: {
      what: '参数无效。',
      suggestion: '请对照工具的输入模式检查参数。',
      retry: '不要重复使用同样的参数：请先改正指出的字段，再重新调用。',
    },
    INTERNAL_ERROR: {
      what: '工具自身存在缺陷。',
      suggestion: '请告知用户该工具有故障，需要由其作者修复。',
      fallback: OTHER_SOURCE,
    },
    UNKNOWN_ERROR: {
      what: '调用失败，原因不明。',
      suggestion: '如果再次失败，请把错误信息转告用户。',
      fallback: OTHER_SOURCE,
    },
  },
  retryAfter: (seconds) => `请至少等待 ${seconds} 秒，然后重试一次。`,
  retryMuchLater: (seconds) =>
    `${seconds} 秒之后重试才有意义。等待时间过长，请告知用户，并跳过这一步继续工作。`,
  retryNow: '现在可以重试一次。',
  retrySoon: '问题可能会自行恢复：请等几秒，然后重试一次。',
  doNotRetry: '不要重试同样的请求，再试仍会失败。',
  doNotRetryNow: '不要立即重试。',
  notBefore: (seconds) => `无论如何，${seconds} 秒之内不要再试。`,
  details: (message) => `详情：${message}`,
};
