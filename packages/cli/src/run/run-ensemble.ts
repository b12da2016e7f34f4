import type { TuttiClient } from '@tutti/client'
import { TuttiError, reasons, type Reason } from '@tutti/core'
import { BackgroundComposerSource, type Ensemble } from '@tutti/proto'
import type { LoadedConfig } from '../config/load-config.ts'
import type { CliContext } from '../context.ts'
import { ensembleResult } from '../live/ensemble-result.ts'
import { showEnsemble } from '../live/show-ensemble.ts'
import { renderSummary } from '../live/summary.ts'
import { collectPatch, type Patch } from '../output/patch.ts'
import { repositorySource } from '../spec/repository-source.ts'
import type { AskedFor } from '../spec/run-flags.ts'
import { openSession, type ServerSession } from '../stack/open-session.ts'
import { watchInterrupts } from './watch-interrupts.ts'

export interface RunEnsemble {
  readonly asked: AskedFor
  readonly config: LoadedConfig
  /** Flags that only a server of our own can follow. */
  readonly flagsForServer: readonly string[]
  readonly idempotencyKey: string
  /** The commands that the summary ends with. */
  readonly next?: (ensemble: Ensemble, session: ServerSession) => readonly string[]
}

const patchLines = 60

/**
 * Starts an ensemble on the server that is up or on a stack of our own, follows it, prints the result, and returns the exit code
 * of its reason. The first Ctrl-C (or SIGTERM) stops the ensemble and waits for its checkpointed end; the second kills.
 */
export async function runEnsemble(context: CliContext, options: RunEnsemble): Promise<number> {
  const { output, deps } = context
  let session: ServerSession | undefined
  let ensembleId: string | undefined
  const starting = new AbortController()
  const killing = new AbortController()
  const following = new AbortController()
  let byKey = false
  const requestStop = (server: ServerSession, id: string) => {
    const how = byKey ? ' Press Ctrl-C again to kill it.' : ''
    output.say(`Stopping the ensemble; its work is checkpointed.${how}`)
    server
      .client()
      .then((client) => client.ensembles.stopEnsemble({ ensembleId: id }))
      .catch((error: unknown) => output.say(`The stop was not accepted: ${TuttiError.from(error).message}`))
  }
  const interrupts = watchInterrupts(deps, {
    onFirst(isKey) {
      byKey = isKey
      if (ensembleId !== undefined && session) requestStop(session, ensembleId)
      else starting.abort()
    },
    onSecond() {
      killing.abort()
      deps.exitNow(130)
    },
  })
  try {
    session = await openSession({
      config: options.config,
      env: deps.env,
      clock: deps.clock,
      loadParts: () => deps.loadParts(),
      log: (line) => output.say(line),
      signal: starting.signal,
      killed: killing.signal,
    })
    if (!session.stack() && options.flagsForServer.length > 0) {
      output.say(
        `The running server decides about ${options.flagsForServer.join(', ')}; the flag has no effect on it.`,
      )
    }
    const client = await session.client()
    ensembleId = await startEnsemble(client, options, deps.cwd, starting.signal)
    // A start that was under way when Ctrl-C came has happened all the same.
    if (starting.signal.aborted) requestStop(session, ensembleId)
    const ui = session.stack()?.temporal.uiAddress
    output.say(`${ensembleId}${ui === undefined ? '' : `  Temporal UI ${temporalUi(ui, ensembleId)}`}`)
    const server = session
    await Promise.race([
      showEnsemble(context, {
        source: () => server.client(),
        ensembleId,
        signal: following.signal,
        to: 'stderr',
        jsonl: output.format === 'jsonl',
      }),
      session.failed,
    ])
    return await printResult(context, options, session, ensembleId)
  } finally {
    following.abort()
    await session?.close()
    interrupts.stop()
  }
}

/** Where the Temporal UI shows an ensemble. */
export const temporalUi = (base: string, ensembleId: string): string =>
  `${base}/namespaces/default/workflows/${encodeURIComponent(`ensemble/${ensembleId}`)}`

async function startEnsemble(
  client: TuttiClient,
  { asked, idempotencyKey }: RunEnsemble,
  cwd: string,
  signal: AbortSignal,
): Promise<string> {
  const { spec, repository } = asked
  if (repository !== undefined) {
    spec.repository = await repositorySource(client, repository, asked.ref, cwd, signal)
  }
  const request = { spec, idempotencyKey, source: BackgroundComposerSource.CLI }
  signal.throwIfAborted()
  const answer = await client.composers.startParallelAgentWorkflow(request)
  return answer.ensembleId
}

async function printResult(
  { output }: CliContext,
  { next }: RunEnsemble,
  session: ServerSession,
  ensembleId: string,
): Promise<number> {
  const client = await session.client()
  const { ensemble } = await client.ensembles.getEnsemble({ ensembleId })
  if (!ensemble)
    throw new TuttiError('not_found', `The ensemble ${ensembleId} is gone.`, { ensemble_id: ensembleId })
  if (output.format !== 'text') {
    const result = ensembleResult(ensemble)
    if (output.format === 'json') output.json(result)
    else output.jsonLine(result)
  } else {
    const patch = await resultPatch(client, ensemble)
    const commands = (next ?? usualNext)(ensemble, session)
    for (const line of renderSummary(ensemble, { paint: output.paint, patch, patchLines, next: commands }))
      output.line(line)
  }
  return Object.hasOwn(reasons, ensemble.reason) ? reasons[ensemble.reason as Reason].exit : 1
}

/** The diff is an extra: a summary without it is better than none. */
async function resultPatch(client: TuttiClient, { pullRequest }: Ensemble): Promise<Patch | undefined> {
  if (!pullRequest) return undefined
  const key = { number: pullRequest.number, repository: pullRequest.repository, url: pullRequest.url }
  return collectPatch(client.pullRequests.diffPullRequest({ key })).catch(() => undefined)
}

function usualNext(ensemble: Ensemble): string[] {
  const first = ensemble.attempts[0]?.bcId
  return [
    ...(ensemble.pullRequest ? [`tutti pr show ${ensemble.pullRequest.number}`] : []),
    `tutti ensemble get ${ensemble.ensembleId}`,
    ...(first === undefined ? [] : [`tutti agent diff ${first}`]),
  ]
}
