import type { LogId } from '@tutti/core'
import { decodeRunEvent, encodeOffset, type RunEvent } from '@tutti/protocol'
import type { LogRecord } from '@tutti/store'

/** A stored record, read once for all who stream it. */
export interface RecordView {
  readonly event: RunEvent
  readonly offset: string
}

/** Decoded records, shared between readers of the same log. */
export interface RecordViews {
  of(log: LogId, record: LogRecord): RecordView
}

/** Live readers stand close together; this many records cover what lies between them. */
const kept = 2000
/** A large record costs more to keep than to read again. */
const keptBodyChars = 16 << 10

export function createRecordViews(): RecordViews {
  const views = new Map<string, RecordView>()
  return {
    of(log, record) {
      const key = `${log}/${record.sequence}`
      const known = views.get(key)
      if (known) return known
      const view = { event: decodeRunEvent(record), offset: encodeOffset(log, record.sequence) }
      if (record.body.length > keptBodyChars) return view
      if (views.size >= kept) views.delete(views.keys().next().value!)
      views.set(key, view)
      return view
    },
  }
}
