import { TuttiError } from '@tutti/core'
import { changedFile, pathBytes } from '@tutti/workspace'
import type { CallHandler } from '../link/callee.ts'
import type { CallStream } from '../link/call.ts'
import { contentEndHead, contentHead, toWireChange } from '../wire-change.ts'
import { createAgentActivity, type AgentActivity } from './agent-activity.ts'
import { createAgentWork, type AgentWork } from './agent-work.ts'
import { createCapturedWorkspace, type CaptureOutput, type CapturedWorkspace } from './captured-workspace.ts'
import { diskFull } from './disk-full.ts'
import { startEgressRelay } from './egress-relay.ts'
import { endOtherProcesses, otherProcesses } from './end-processes.ts'
import { runExec, type ExecParams } from './exec.ts'
import { readWorkspaceFile, writeWorkspaceFile } from './files.ts'
import { agentPaths, hydrateWorkspace, startLaps, type HydrateParams } from './hydrate.ts'
import { createIgnoredPaths } from './ignored-paths.ts'
import { createPathHints, type PathHints } from './path-hints.ts'
import { createCapturedRepository, type CapturedRepository } from './repository/captured-repository.ts'
import { receiveChanges } from './receive-changes.ts'
import { createWorkspaceLook } from './workspace-look.ts'
import type { InsideSettings } from './settings.ts'
import { VanishedFiles } from './vanished-files.ts'

interface Ready {
  readonly settings: InsideSettings
  readonly workspace: CapturedWorkspace
  readonly repository: CapturedRepository
  readonly hints: PathHints
  readonly activity: AgentActivity
  readonly env: Readonly<Record<string, string>>
  readonly agentWork: AgentWork
  /** What was hydrated. */
  written?: { readonly params: HydrateParams; readonly changed: readonly string[] }
}

/** What the host may call. `hello` comes first. */
export function createHandlers(): {
  readonly handlers: Readonly<Record<string, CallHandler>>
  /** What the server does when its link ends. */
  readonly end: () => Promise<void>
} {
  let ready: Ready | undefined
  const need = (): Ready => {
    if (!ready) throw new TuttiError('failed_precondition', 'The first call must be hello.')
    return ready
  }

  const handlers = {
    async hello(settings: InsideSettings) {
      const repository = createCapturedRepository(settings.workdir, settings.home)
      const ignored = createIgnoredPaths(settings.workdir, settings.home)
      const look = createWorkspaceLook({ root: settings.workdir, ignored, policy: settings.ignored })
      const hints = createPathHints(settings.workdir)
      const activity = createAgentActivity(settings.isolated)
      const workspace = createCapturedWorkspace({
        root: settings.workdir,
        look,
        ignored,
        repository,
        hints,
        activity,
        maxFileBytes: settings.maxFileBytes,
      })
      const env = settings.egressSocket === undefined ? {} : await startEgressRelay(settings.egressSocket)
      const agentWork = createAgentWork(settings.workdir, settings.home)
      ready = { settings, workspace, repository, hints, activity, env, agentWork }
    },
    async ping() {},
    async exec(params: ExecParams, call: CallStream, signal: AbortSignal) {
      const { settings, env, activity } = need()
      const { workdir, stopGraceMs } = settings
      const ended = activity.began()
      return runExec(params, call, signal, { workdir, stopGraceMs, env }).finally(ended)
    },
    async hydrate(params: HydrateParams, call: CallStream, signal: AbortSignal) {
      const { settings, workspace, repository, env } = need()
      const lap = startLaps()
      const written = await hydrateWorkspace(params, call, signal, { ...settings, env })
      const { head, state, statePacks } = params
      need().written = { params, changed: written.changed }
      const { summary, wrong, gone } = await workspace.adopt(written, signal)
      const { tips, withoutSubmodules, withoutRepository, ms: restore } = await written.restored
      const { gitlinks, times } = written
      // What it took longer than all that was done beside it.
      const scan = Math.max(0, lap() - times.clone - times.blobs - restore)
      repository.adopt({
        base: head,
        gitlinks: [...gitlinks.keys()],
        gone,
        ...(state !== undefined && { state }),
        packs: statePacks,
        tips,
      })
      const toWire = (key: string) => pathBytes(key).toString('base64')
      return {
        ...summary,
        wrong,
        withoutSubmodules: withoutSubmodules.map(toWire),
        withoutRepository,
        times: { ...times, restore, scan },
      }
    },
    async keepWork(_: unknown, _call: CallStream, signal: AbortSignal) {
      const { written, settings, agentWork } = need()
      if (!written) return
      const paths = await agentPaths(written.params, written.changed, settings, signal)
      agentWork.keep(paths)
    },
    async absorb(_: unknown, _call: CallStream, signal: AbortSignal) {
      need().agentWork.putBack()
      await need().workspace.absorb(signal)
    },
    async capture(_: unknown, call: CallStream, signal: AbortSignal) {
      return need().workspace.capture(captureTo(call), signal).catch(endWhenVanished)
    },
    async captureHinted(_: unknown, call: CallStream, signal: AbortSignal) {
      const { workspace, hints } = need()
      const from = performance.now()
      try {
        return await workspace.captureHinted(captureTo(call), signal)
      } finally {
        hints.rest(restFactor * (performance.now() - from))
      }
    },
    /** A message for each hint, until the host has heard enough. */
    async hints(_: unknown, call: CallStream, signal: AbortSignal) {
      let sending = false
      const tell = () => {
        if (sending) return
        sending = true
        void call
          .send({})
          .catch(() => {})
          .finally(() => (sending = false))
      }
      need().hints.begin(tell, signal)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    },
    async look(_: unknown, _call: CallStream, signal: AbortSignal) {
      return need().workspace.look(signal).catch(endWhenVanished)
    },
    async sync(_: unknown, call: CallStream, signal: AbortSignal) {
      return need()
        .workspace.sync(receiveChanges(call.messages[Symbol.asyncIterator]()), captureTo(call), signal)
        .catch(endWhenVanished)
    },
    async readFile({ path, maxBytes }: { path: string; maxBytes: number }, call: CallStream) {
      const bytes = await readWorkspaceFile(need().settings.workdir, path, maxBytes)
      for (const part of partsOf(bytes)) await call.send(contentHead, part)
    },
    async writeFile({ path }: { path: string }, call: CallStream) {
      const parts: Uint8Array[] = []
      for await (const { bytes } of call.messages) parts.push(bytes)
      await writeWorkspaceFile(need().settings.workdir, path, Buffer.concat(parts))
    },
    async hasProcesses() {
      return otherProcesses(need().settings.isolated).length > 0
    },
    async killProcesses() {
      const { settings } = need()
      await endOtherProcesses(settings.isolated, settings.stopGraceMs)
    },
  }
  const namingFullDisk = ([name, handle]: [string, CallHandler]): [string, CallHandler] => [
    name,
    (params, call, signal) =>
      handle(params, call, signal).catch((thrown: unknown) => {
        throw (ready && diskFull(thrown, ready.settings.home)) ?? thrown
      }),
  ]
  return {
    handlers: Object.fromEntries(Object.entries<CallHandler>(handlers).map(namingFullDisk)),
    async end() {
      if (ready) await endOtherProcesses(ready.settings.isolated, ready.settings.stopGraceMs)
    },
  }
}

/** A sandbox whose files have vanished is lost, and its host finds that out as it finds out any other end. */
function endWhenVanished(error: unknown): never {
  if (!(error instanceof VanishedFiles)) throw error
  process.stderr.write(error.message, () => process.exit(1))
  throw error
}

/** Captures by hints take at most a tenth of the time. */
const restFactor = 9

const partBytes = 64 << 10

function* partsOf(bytes: Uint8Array = new Uint8Array()): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += partBytes) yield bytes.subarray(start, start + partBytes)
}

function captureTo(call: CallStream): CaptureOutput {
  return {
    async content(content) {
      await call.send({ content: true })
      try {
        for await (const chunk of content)
          for (const part of partsOf(chunk)) await call.send(contentHead, part)
      } finally {
        await call.send(contentEndHead)
      }
    },
    async change(change, content) {
      const isAhead = content === undefined && changedFile(change) !== undefined
      await call.send({ change: { ...toWireChange(change), ...(isAhead && { ahead: true }) } })
      for (const part of partsOf(content)) await call.send(contentHead, part)
    },
    skipped: (path, reason, size) =>
      call.send({
        skipped: {
          path: Buffer.from(path).toString('base64'),
          reason,
          ...(size === undefined ? {} : { size }),
        },
      }),
    unwritten: (path, code) => call.send({ unwritten: { path: Buffer.from(path).toString('base64'), code } }),
    async gitState(report, bytes) {
      await call.send({ gitState: report })
      for await (const chunk of bytes) await call.send(contentHead, chunk)
    },
    async committed(summary) {
      await call.send({ summary })
      for await (const { head } of call.messages) {
        if (head === 'commit') return { takesState: true }
        if (head === 'commit_without_state') return { takesState: false }
      }
      // A caller that went away has not taken the changes.
      throw new TuttiError(
        'cancelled',
        'The capture was not taken by the host; the next one reports the same changes again.',
      )
    },
  }
}
