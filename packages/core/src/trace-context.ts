import type { EnsembleId, LogId } from './ids.ts'

/** Ids of a span as OpenTelemetry writes them: 32 and 16 lower-case hex digits. */
export interface SpanIds {
  readonly traceId: string
  readonly spanId: string
}

/** Name of the context key under which a span that is about to start finds the ids that it must have (decision 0070). */
export const forcedIdsKey = 'tutti.span-ids'

/**
 * Where the work of an agent or ensemble hangs in its trace (decision 0070). The UUID of the id is the trace id and its last 16
 * digits are the id of the span above everything else, so that no context has to be carried and whoever knows the id finds the trace.
 *
 * @param memberOf the ensemble that made the agent: then the trace is the ensemble's, and the span is the agent's in it
 */
export function spanIdsOf(id: LogId, memberOf?: EnsembleId): SpanIds {
  return { traceId: digits(memberOf ?? id), spanId: digits(id).slice(16) }
}

/** {@link spanIdsOf} as a W3C `traceparent`, sampled: what somebody sets who wants to add spans of his own to the trace. */
export function traceparentOf(id: LogId, memberOf?: EnsembleId): string {
  const { traceId, spanId } = spanIdsOf(id, memberOf)
  return `00-${traceId}-${spanId}-01`
}

/** The ids in a W3C `traceparent`; undefined for anything that is none, and for the all-zero ids that the standard forbids. */
export function parseTraceparent(text: string): SpanIds | undefined {
  const [, traceId, spanId] = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(text) ?? []
  if (!traceId || !spanId || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId }
}

/** When an id was made, in milliseconds since the epoch: the first 48 bits of a version 7 UUID. */
export const madeAt = (id: LogId): number => Number.parseInt(digits(id).slice(0, 12), 16)

const digits = (id: LogId) => id.slice(3).replaceAll('-', '')
