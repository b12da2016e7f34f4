import { TuttiError, type LogId } from '@tutti/core'
import { decodeRunEvent, encodeRunEvent, type EventBody } from '../run-event-body.ts'
import { fromJsonRpc, toJsonRpc, type JsonRpcNotification } from './json-rpc.ts'

/** What a segment says before its records. */
export interface SegmentHead {
  readonly log: LogId
  readonly owner: string
  /** What the catalog had of the agent or ensemble when the segment was sealed. */
  readonly about: unknown
}

/** A record of a log, as it was stored. */
export interface SegmentRecord extends EventBody {
  readonly sequence: number
  readonly at: number
  readonly producer: string
  readonly epoch: number
  readonly producerSequence: number
}

/** Of the lines; a newer one is refused. */
const format = 1
const headMethod = '_tutti/segment'

/**
 * The archived form of a log (design §7): NDJSON of JSON-RPC notifications with the seed's method names. Beside `method` and `params` each
 * has `tutti`, with its place in the log; the first line is the head.
 */
export function encodeSegment(head: SegmentHead, records: readonly SegmentRecord[]): string {
  const first = { jsonrpc: '2.0', method: headMethod, params: { format, ...head } }
  return [first, ...records.map(line)].map((value) => `${JSON.stringify(value)}\n`).join('')
}

function line({ type, body, ...place }: SegmentRecord): object {
  try {
    const message = toJsonRpc(decodeRunEvent({ type, body }))
    // Whoever wrote it may have had its fields in another order: then the text itself is kept as well.
    const isSame = encodeRunEvent(fromJsonRpc(message)).body === body
    return { ...message, tutti: isSame ? place : { ...place, body } }
  } catch (error) {
    // What cannot be read is kept all the same.
    if (!(error instanceof TuttiError)) throw error
    return { jsonrpc: '2.0', method: `_tutti/${type}`, params: {}, tutti: { ...place, body } }
  }
}

/** @throws TuttiError `data_loss` for what is no segment or is cut off; `failed_precondition` for one of a newer version of Tutti. */
export function decodeSegment(text: string): SegmentHead & { readonly records: readonly SegmentRecord[] } {
  const [first = '', ...lines] = text.split('\n')
  if (lines.pop() !== '') throw damaged()
  const head = parse<JsonRpcNotification>(first)
  if (head.method !== headMethod) throw damaged()
  if (head.params['format'] !== format)
    throw new TuttiError(
      'failed_precondition',
      'A segment of a log was written by a newer version of Tutti; use that one.',
      { format: String(head.params['format']) },
    )
  const { log, owner, about } = head.params as unknown as SegmentHead
  return { log, owner, about, records: lines.map(recordOf) }
}

function recordOf(text: string): SegmentRecord {
  const { tutti, ...message } = parse<JsonRpcNotification & { tutti: SegmentRecord & { body?: string } }>(
    text,
  )
  const { body, ...place } = tutti
  if (body === undefined) return { ...place, ...encodeRunEvent(fromJsonRpc(message)) }
  const type = message.method.startsWith('_tutti/')
    ? message.method.slice('_tutti/'.length)
    : fromJsonRpc(message).type
  return { ...place, type, body }
}

function parse<T>(text: string): T {
  try {
    return JSON.parse(text) as T
  } catch (cause) {
    throw damaged(cause)
  }
}

const damaged = (cause?: unknown) =>
  new TuttiError('data_loss', 'A segment of a log in the archive is damaged.', {}, cause)
