import type { LoggedEvent } from '@tutti/client'
import type { RunEvent } from '@tutti/protocol'
import { eventLines } from './event-line.ts'
import { textWidth, type Output } from './output.ts'

/**
 * Events as lines for a person, or as `{"offset_key", "event"}`: one object per line with jsonl and when following, one array
 * with json.
 */
export async function printEvents(
  output: Output,
  events: AsyncIterable<LoggedEvent>,
  follow: boolean,
): Promise<void> {
  const width = textWidth(output.stdout)
  const all: object[] = []
  for await (const { offsetKey, eventJson, atMs } of events) {
    const event = JSON.parse(eventJson) as RunEvent
    if (output.format === 'text') {
      for (const line of eventLines(event, Number(atMs), width)) output.line(line)
    } else if (output.format === 'jsonl' || follow) output.jsonLine({ offset_key: offsetKey, event })
    else all.push({ offset_key: offsetKey, event })
  }
  if (output.format === 'json' && !follow) output.json(all)
}
