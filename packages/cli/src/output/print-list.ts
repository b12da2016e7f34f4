import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import { messageJson } from './message-json.ts'
import type { Output } from './output.ts'

/** A list in the format asked for: a table, one JSON array, or one JSON object per line. */
export function printList<D extends DescMessage>(
  output: Output,
  desc: D,
  { items, more }: { readonly items: readonly MessageShape<D>[]; readonly more: boolean },
  render: () => readonly string[],
  none: string,
): void {
  if (output.format === 'json') output.json(items.map((item) => messageJson(desc, item)))
  else if (output.format === 'jsonl') for (const item of items) output.jsonLine(messageJson(desc, item))
  else if (items.length === 0) output.say(none)
  else for (const line of render()) output.line(line)
  if (more) output.say('There are more; see --limit.')
}
