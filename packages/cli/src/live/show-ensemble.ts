import { followEnsemble, type ClientSource } from '@tutti/client'
import { ParallelAgentWorkflowStatusUpdateSchema, type ParallelAgentWorkflowStatusUpdate } from '@tutti/proto'
import type { CliContext } from '../context.ts'
import { messageJson } from '../output/message-json.ts'
import { formatDuration } from '../values/duration.ts'
import { createChildHeadlines } from './child-headlines.ts'
import { createPlainLines } from './plain-lines.ts'
import { canRepaint, createRepainter } from './repainter.ts'
import { renderTable } from './table-view.ts'

export interface ShowEnsemble {
  readonly source: ClientSource
  readonly ensembleId: string
  readonly from?: string | undefined
  readonly signal: AbortSignal
  /** Where the view goes: stderr beside a result on stdout, stdout when it is the data itself. */
  readonly to: 'stdout' | 'stderr'
  /** Each update as a line of JSON on stdout instead of a view. */
  readonly jsonl: boolean
  /** Whether this client has stopped it. */
  readonly stoppedHere?: () => boolean
}

const tickMs = 250

/**
 * Follows an ensemble to its end and shows it: in a terminal that can move its cursor as a table that repaints itself, else as one plain line per change.
 * Returns the last update; undefined when there was none.
 */
export async function showEnsemble(
  { output, deps }: CliContext,
  { source, ensembleId, from, signal, to, jsonl, stoppedHere }: ShowEnsemble,
): Promise<ParallelAgentWorkflowStatusUpdate | undefined> {
  const stream = output[to]
  const paint = to === 'stdout' ? output.paint : output.paintTalk
  const now = () => deps.clock.now()
  const plain = createPlainLines(now, stoppedHere)
  const view = canRepaint(stream, deps.env) && !jsonl ? createRepainter(stream) : undefined
  let last: ParallelAgentWorkflowStatusUpdate | undefined
  const frame = () =>
    last
      ? renderTable(last, {
          now: now(),
          columns: stream.columns,
          rows: stream.rows,
          paint,
          headline: (bcId) => headlines.of(bcId),
        })
      : []
  const ended = new AbortController()
  const headlines = createChildHeadlines(source, AbortSignal.any([signal, ended.signal]), () =>
    view?.paint(frame),
  )
  const offTalk = output.onTalk(() => view?.clear())
  const tick = setInterval(() => last && view?.paint(frame), tickMs)
  tick.unref()
  try {
    const updates = followEnsemble(
      source,
      { ensembleId, from, signal },
      {
        onBroken: (_error, waitMs) => {
          output.say(`Lost the connection to the server; trying again in ${formatDuration(waitMs)}.`)
        },
      },
    )
    for await (const update of updates) {
      last = update
      if (jsonl) output.jsonLine(messageJson(ParallelAgentWorkflowStatusUpdateSchema, update))
      else if (view) {
        for (const { bcId } of update.children) headlines.watch(bcId)
        view.paint(frame)
      } else for (const line of plain(update)) stream.write(`${line}\n`)
    }
    return last
  } finally {
    clearInterval(tick)
    ended.abort()
    offTalk()
    view?.finish()
  }
}
