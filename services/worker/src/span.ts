import {
  ROOT_CONTEXT,
  SpanStatusCode,
  TraceFlags,
  context,
  createContextKey,
  trace,
  type Attributes,
  type Context,
  type Span,
} from '@opentelemetry/api'
import { forcedIdsKey, type SpanIds } from '@tutti/core'

/** Does nothing until the composition root has set a provider (decision 0070). */
const tracer = trace.getTracer('@tutti/worker')

const forcedIds = createContextKey(forcedIdsKey)

/** The context below a span that somebody else has made or will make. */
export const below = (ids: SpanIds): Context =>
  trace.setSpanContext(ROOT_CONTEXT, { ...ids, traceFlags: TraceFlags.SAMPLED, isRemote: true })

/** Runs the body inside a span that ends with it. A failure is told by `wordOf`, never by its message. */
export async function inSpan<T>(
  name: string,
  options: {
    readonly attributes?: Attributes
    readonly parent?: Context
    readonly wordOf: (thrown: unknown) => string
  },
  body: (span: Span) => Promise<T>,
): Promise<T> {
  const parent = options.parent ?? context.active()
  const span = tracer.startSpan(name, { attributes: options.attributes ?? {} }, parent)
  try {
    return await context.with(trace.setSpan(parent, span), () => body(span))
  } catch (thrown) {
    span.setStatus({ code: SpanStatusCode.ERROR, message: options.wordOf(thrown) })
    throw thrown
  } finally {
    span.end()
  }
}

/** A span that has been, with times in milliseconds since the epoch. */
export interface PastSpan {
  readonly name: string
  readonly from: number
  readonly to: number
  readonly attributes: Attributes
  /** Without one it is the root of its trace. */
  readonly parent?: SpanIds
  /** The ids that others have named as their parent already. */
  readonly ids?: SpanIds
  /** Why it failed. */
  readonly error?: string
}

export function emitSpan({ name, from, to, attributes, parent, ids, error }: PastSpan): void {
  const at = parent ? below(parent) : ROOT_CONTEXT
  const span = context.with(ids ? at.setValue(forcedIds, ids) : at, () =>
    tracer.startSpan(name, { startTime: from, attributes, root: !parent }, at),
  )
  if (error) span.setStatus({ code: SpanStatusCode.ERROR, message: error })
  span.end(to)
}
