import { TuttiError } from '@tutti/core'
import { WorkspaceSummarySchema, type WorkspaceSummary } from '@tutti/proto'
import { messageJson } from '../output/message-json.ts'
import { isTextOutput, type Output } from '../output/output.ts'
import { leftOutText } from '../output/left-out-text.ts'
import { shownPath } from '../output/shown-path.ts'
import { safeLine } from '../output/terminal-text.ts'
import { writeSize } from '../values/size.ts'

/**
 * What was read of a workspace, and whether that is what the log recorded.
 *
 * @throws TuttiError `data_loss` when it is not.
 */
export function printSummary(output: Output, summary: WorkspaceSummary): void {
  const { recordedDigest: recorded, manifestDigest: read } = summary
  const isProven = recorded === read
  if (isTextOutput(output)) for (const line of lines(summary)) output.line(line)
  else output.json({ ...(messageJson(WorkspaceSummarySchema, summary) as object), proven: isProven })
  if (recorded === '' || isProven) return
  throw new TuttiError(
    'data_loss',
    'What the stores have is not what the log recorded for this position. `tutti doctor` looks at the stores; an earlier offset may be whole.',
    { recorded, read },
  )
}

function* lines(summary: WorkspaceSummary): Generator<string> {
  const { entries, bytes, replayed, commit, recordedDigest: recorded, manifestDigest: read } = summary
  yield `${entries} entries, ${writeSize(Number(bytes))}: checkpoint ${safeLine(commit)} and ${replayed} changes after it`
  const proof = recorded === '' ? 'no digest was recorded for this position' : 'as recorded'
  yield `digest ${safeLine(read)}, ${recorded === '' || recorded === read ? proof : `recorded was ${safeLine(recorded)}`}`
  for (const { name, ms } of summary.steps) yield `${safeLine(name)}: ${ms} ms`
  for (const { path, reason } of summary.missing) yield leftOutText(shownPath(path), safeLine(reason))
}
