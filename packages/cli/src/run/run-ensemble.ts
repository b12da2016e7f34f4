import type { TuttiClient } from '@tutti/client'
import { TuttiError, reasons, type Reason } from '@tutti/core'
import { BackgroundComposerSource, type Ensemble } from '@tutti/proto'
import type { LoadedConfig } from '../config/load-config.ts'
import { createCommandLine } from '../command-line.ts'
import type { CliContext } from '../context.ts'
import { ensembleResult } from '../live/ensemble-result.ts'
import { showEnsemble } from '../live/show-ensemble.ts'
import type { SummaryOptions } from '../live/summary-options.ts'
import { renderSummary } from '../live/summary.ts'
import { textWidth, type Output } from '../output/output.ts'
import { collectPatch } from '../output/patch.ts'
import { localPath, repositorySource } from '../spec/repository-source.ts'
import type { AskedFor } from '../spec/run-flags.ts'
import { openSession, type ServerSession } from '../stack/open-session.ts'
import { lookAtAgents, showPullRequest, startServer } from './next-commands.ts'
import { countUncommitted } from './uncommitted-changes.ts'
import { watchInterrupts } from './watch-interrupts.ts'

export interface RunEnsemble {
  readonly asked: AskedFor
  readonly config: LoadedConfig
  /** Flags that only a server of our own can follow. */
  readonly flagsForServer: readonly string[]
  readonly idempotencyKey: string
  /** More for the end of the summary, behind the commands that every run prints. */
  readonly alsoNext?: (ensemble: Ensemble, session: ServerSession) => readonly string[]
}

/**
 * Starts an ensemble on the server that is up or on a stack of our own, follows it, prints the result, and returns the exit code
 * of its reason. The first Ctrl-C (or SIGTERM) stops the ensemble and waits for its checkpointed end; the second kills.
 */
export async function runEnsemble(context: CliContext, options: RunEnsemble): Promise<number> {
  const { output, deps } = context
  // While the server starts: git takes its time on a large tree.
  const uncommitted = uncommittedIn(options.asked.repository, deps.cwd)
  let session: ServerSession | undefined
  let ensembleId: string | undefined
  const starting = new AbortController()
  const killing = new AbortController()
  const following = new AbortController()
  let byKey = false
  let stoppedHere = false
  const requestStop = (server: ServerSession, id: string) => {
    stoppedHere = true
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
      output.say(
        ensembleId !== undefined && !session?.stack()
          ? 'Leaving now; the ensemble ends on its server.'
          : 'Killing it now.',
      )
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
    warnUncommitted(output, await uncommitted)
    ensembleId = await startEnsemble(client, options, deps.cwd, starting.signal)
    // A start that was under way when Ctrl-C came has happened all the same.
    if (starting.signal.aborted) requestStop(session, ensembleId)
    const ui = session.stack()?.temporal.uiAddress
    output.say(`${ensembleId}${ui === undefined ? '' : `  Temporal UI ${temporalUi(ui, ensembleId)}`}`)
    const server = session
    const last = await Promise.race([
      showEnsemble(context, {
        source: () => server.client(),
        ensembleId,
        signal: following.signal,
        to: 'stderr',
        jsonl: output.format === 'jsonl',
        stoppedHere: () => stoppedHere,
      }),
      session.failed,
    ])
    return await printResult(context, options, session, ensembleId, {
      checked: last?.synthesis,
      stoppedHere,
    })
  } finally {
    following.abort()
    await session?.close()
    interrupts.stop()
  }
}

/** Where the Temporal UI shows an ensemble. */
export const temporalUi = (base: string, ensembleId: string): string =>
  `${base}/namespaces/default/workflows/${encodeURIComponent(`ensemble/${ensembleId}`)}`

async function uncommittedIn(repository: string | undefined, cwd: string): Promise<number> {
  const path = repository === undefined ? undefined : localPath(repository, cwd)
  return path === undefined ? 0 : countUncommitted(path)
}

/** A local repository may hold work that is not committed, and people take it for part of what the agents see. */
function warnUncommitted(output: Output, count: number): void {
  if (count === 0) return
  const paths = `${count} path${count === 1 ? '' : 's'}`
  output.say(`The agents start from what is committed; ${paths} with uncommitted changes stay out.`)
}

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
  { output, deps }: CliContext,
  { config, alsoNext }: RunEnsemble,
  session: ServerSession,
  ensembleId: string,
  seen: Pick<SummaryOptions, 'checked' | 'stoppedHere'>,
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
    const command = createCommandLine(deps.env, config)
    const next = [
      ...(session.stack() ? startServer(command) : []),
      ...(await showPullRequest(client, ensemble, command)),
      command(`ensemble get ${ensembleId}`),
      ...lookAtAgents(ensemble, command),
      ...(alsoNext?.(ensemble, session) ?? []),
    ]
    const { paint, stdout } = output
    for (const line of renderSummary(ensemble, {
      paint,
      width: textWidth(stdout),
      command,
      patch,
      next,
      ...seen,
    }))
      output.line(line)
  }
  return Object.hasOwn(reasons, ensemble.reason) ? reasons[ensemble.reason as Reason].exit : 1
}

/** The diff is an extra: a summary without it is better than none. */
async function resultPatch(client: TuttiClient, { pullRequest }: Ensemble): Promise<Uint8Array | undefined> {
  if (!pullRequest) return undefined
  const key = { number: pullRequest.number, repository: pullRequest.repository, url: pullRequest.url }
  return collectPatch(client.pullRequests.diffPullRequest({ key })).then(
    ({ bytes }) => bytes,
    () => undefined,
  )
}
