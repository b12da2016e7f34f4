import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  context,
  createContextKey,
  trace,
  type Link,
  type SpanContext,
} from '@opentelemetry/api'
import {
  TuttiError,
  parseTraceparent,
  spanIdsOf,
  type EnsembleId,
  type LogId,
  type SpanIds,
} from '@tutti/core'

import type { TemporalGateway } from './temporal-gateway.ts'

/** Does nothing until the composition root has set a provider (decision 0070). */
const tracer = trace.getTracer('@tutti/api')

const linksKey = createContextKey('tutti.links')

/** A call that is being answered: runs its handler with the span active, and ends the span with Connect's code. */
export interface CallSpan {
  run<T>(handler: () => Promise<T>): Promise<T>
  end(code: string): void
}

/**
 * The span of a call: a trace of its own, linked to the client's `traceparent`. The client does not decide about our trace ids or
 * about sampling; its span is one click away all the same.
 */
export function startCallSpan(service: string, method: string, traceparent: string | null): CallSpan {
  const client = parseTraceparent(traceparent ?? '')
  const links = client ? [{ context: remote(client) }] : []
  const span = tracer.startSpan(`${service}/${method}`, {
    root: true,
    kind: SpanKind.SERVER,
    links,
    attributes: { 'rpc.system': 'connect_rpc', 'rpc.service': service, 'rpc.method': method },
  })
  const inside = trace
    .setSpan(context.active(), span)
    .setValue(linksKey, [{ context: span.spanContext() }, ...links])
  return {
    run: (handler) => context.with(inside, handler),
    end(code) {
      span.setAttribute('rpc.connect_rpc.error_code', code)
      if (code === 'Internal' || code === 'DataLoss' || code === 'Unavailable')
        span.setStatus({ code: SpanStatusCode.ERROR, message: code })
      span.end()
    },
  }
}

/** The gateway with a span for everything that it sends, in the trace of the agent or ensemble it is for. */
export function traceGateway(gateway: TemporalGateway): TemporalGateway {
  return {
    startAgent: (input, signal) =>
      inTraceOf(input.bcId, input.memberOf, 'start agent', () => gateway.startAgent(input, signal)),
    startEnsemble: (input, signal) =>
      inTraceOf(input.ensembleId, undefined, 'start ensemble', () => gateway.startEnsemble(input, signal)),
    agentCommand: (input, request, signal) =>
      inTraceOf(input.bcId, input.memberOf, `agent ${request.command.type}`, () =>
        gateway.agentCommand(input, request, signal),
      ),
    stopEnsemble: (ensembleId, requestId, signal) =>
      inTraceOf(ensembleId, undefined, 'stop ensemble', () =>
        gateway.stopEnsemble(ensembleId, requestId, signal),
      ),
    ready: (signal) => gateway.ready(signal),
  }
}

async function inTraceOf<T>(
  id: LogId,
  memberOf: EnsembleId | undefined,
  name: string,
  send: () => Promise<T>,
): Promise<T> {
  const parent = trace.setSpanContext(ROOT_CONTEXT, remote(spanIdsOf(id, memberOf)))
  const links = (context.active().getValue(linksKey) ?? []) as Link[]
  const attributes = id.startsWith('bc-')
    ? { bc_id: id, ...(memberOf && { ensemble_id: memberOf }) }
    : { ensemble_id: id }
  const span = tracer.startSpan(name, { kind: SpanKind.PRODUCER, links, attributes }, parent)
  try {
    return await send()
  } catch (thrown) {
    // Only the code: a message may name what the user wrote.
    span.setStatus({ code: SpanStatusCode.ERROR, message: TuttiError.from(thrown).code })
    throw thrown
  } finally {
    span.end()
  }
}

const remote = (ids: SpanIds): SpanContext => ({ ...ids, traceFlags: TraceFlags.SAMPLED, isRemote: true })
