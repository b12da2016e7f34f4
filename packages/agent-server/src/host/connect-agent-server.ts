import { limits, TuttiError } from '@tutti/core'
import type { HostExecExit, HostExecOutput, HostExecRequest } from '@tutti/agent'
import type { Exec, ExecExit } from '@tutti/sandbox'
import { changePath, pathKey, type CapturedChange } from '@tutti/workspace'
import type { HydrateParams } from '../inside/hydrate.ts'
import type { InsideSettings } from '../inside/settings.ts'
import type { CallStream } from '../link/call.ts'
import { createCaller } from '../link/caller.ts'
import { createLink } from '../link/link.ts'
import type { OutgoingCall } from '../link/caller.ts'
import type { AgentServer, CaptureSink } from '../port.ts'
import { contentHead, packEndHead, packHead } from '../wire-change.ts'
import { receiveCapture } from './receive-capture.ts'
import { sendChanges, sendChunks } from './send-changes.ts'
import {
  answer,
  captureSummary,
  hydrated,
  contentMessage,
  execExit,
  execOutput,
  reported,
} from './reported.ts'

export interface ConnectOptions {
  /** The running agent server. */
  readonly exec: Exec
  /** Without `maxFileBytes`, that of `limits`. */
  readonly settings: Omit<InsideSettings, 'maxFileBytes'> & Partial<Pick<InsideSettings, 'maxFileBytes'>>
  /** Told what the server writes to its standard error; for the log. */
  readonly onStderr?: (text: string) => void
}

const never = new AbortController().signal
/** How much of the server's last words goes into the reason of its end. */
const tailBytes = 2000

/**
 * The host's end of the link to an agent server. Resolves when the server has answered.
 *
 * @throws TuttiError `unavailable` when it ends first; the message has its last words.
 */
export async function connectAgentServer({ exec, settings, onStderr }: ConnectOptions): Promise<AgentServer> {
  const link = createLink({ onMessage: (header, bytes) => caller.onMessage(header, bytes) })
  const caller = createCaller(link)
  link.attach((bytes) => exec.write(bytes))

  let tail = ''
  const stderrDone = readAll(exec.stderr, (chunk) => {
    const text = Buffer.from(chunk).toString()
    tail = (tail + text).slice(-tailBytes)
    onStderr?.(text)
  })
  const lost = (async () => {
    const problem = await readAll(exec.stdout, (chunk) => link.receive(chunk))
    // Whatever it is, a server whose output is not the protocol is of no use any more.
    if (problem) await exec.kill('SIGKILL')
    const exit = await exec.exit
    await stderrDone
    const reason = problem ?? describeExit(exit, tail)
    const error = new TuttiError('unavailable', `The agent server is gone: ${reason}.`, {
      reason: exit.limit ? 'resource_limit' : 'sandbox_lost',
      ...(exit.limit ? { limit: exit.limit } : {}),
    })
    link.close(error)
    caller.fail(error)
    return reason
  })()

  const { maxFileBytes = limits.maxFileBytes } = settings
  let onToolEnded: ((signal: AbortSignal) => Promise<void>) | undefined
  let onNews: (() => string) | undefined
  let captures: Promise<unknown> = Promise.resolve()
  const capture = (
    method: string,
    sink: CaptureSink,
    signal: AbortSignal,
    begin: (call: OutgoingCall) => Promise<void> = async () => {},
    given: readonly CapturedChange[] = [],
  ) => {
    const run = async () => {
      const giveUp = new AbortController()
      const forward = () => giveUp.abort(signal.reason)
      const keep = () => signal.removeEventListener('abort', forward)
      if (signal.aborted) forward()
      signal.addEventListener('abort', forward, { once: true })
      const call = caller.call(method, {}, giveUp.signal)
      try {
        await Promise.race([begin(call), call.result])
        return await receiveCapture(
          call,
          sink,
          keep,
          new Set(given.map((change) => pathKey(changePath(change)))),
        )
      } finally {
        keep()
        call.cancel()
      }
    }
    const result = captures.then(run)
    captures = result.catch(() => {})
    return result
  }
  await caller.call('hello', { ...settings, maxFileBytes } satisfies InsideSettings, never).result

  return {
    workdir: settings.workdir,
    home: settings.home,
    lost,

    async *exec(request: HostExecRequest, signal): AsyncGenerator<HostExecOutput, HostExecExit> {
      const { stdin, ...params } = request
      const call = caller.call('exec', params, signal)
      void sendAll(call, stdin ?? new Uint8Array()).catch(() => {})
      try {
        for await (const { head, bytes } of call.messages) {
          yield { stream: reported(execOutput, head, 'output of a program'), bytes }
        }
        return reported(execExit, await call.result, 'an end of a program')
      } finally {
        call.cancel()
      }
    },

    async readFile(path, maxBytes, signal) {
      const call = caller.call('readFile', { path, maxBytes }, signal)
      const parts: Uint8Array[] = []
      let length = 0
      try {
        for await (const { head, bytes } of call.messages) {
          reported(contentMessage, head, 'content of a file')
          length += bytes.length
          if (length > maxBytes) {
            throw new TuttiError(
              'data_loss',
              'The agent server reported more of a file than it was asked for.',
            )
          }
          parts.push(bytes)
        }
        await call.result
      } finally {
        call.cancel()
      }
      return Buffer.concat(parts)
    },

    async writeFile(path, bytes, signal) {
      const call = caller.call('writeFile', { path }, signal)
      await Promise.race([sendAll(call, bytes), call.result])
      await call.result
    },

    async toolEnded(signal) {
      await onToolEnded?.(signal)
    },
    news: () => onNews?.() ?? '',
    onNews(take) {
      onNews = take
    },
    onToolEnded(capture) {
      onToolEnded = capture
    },

    async hydrate(request, signal) {
      const { commit, head = commit, branch, shallow, git } = request
      const packs = [...(request.pack ? [request.pack] : []), ...(git?.packs ?? [])]
      const params: HydrateParams = {
        commit,
        head,
        branch,
        packs: packs.length,
        statePacks: git?.packs.length ?? 0,
        ...(git && { state: git.commit }),
        ...(shallow && { shallow }),
      }
      const call = caller.call('hydrate', params, signal)
      const sending = (async () => {
        for (const pack of packs) {
          await sendChunks(call, packHead, pack)
          await call.send(packEndHead)
        }
        await sendChanges(call, request.changes, request)
        call.end()
      })()
      sending.catch(() => call.cancel())
      // Its own failure explains more than the cancellation that follows from it.
      await Promise.race([sending, call.result])
      const said = reported(hydrated, await call.result, 'a summary')
      const bytes = (path: string) => Buffer.from(path, 'base64')
      return {
        ...said,
        wrong: said.wrong.map(bytes),
        withoutSubmodules: said.withoutSubmodules.map(bytes),
      }
    },

    capture: (sink, signal) => capture('capture', sink, signal),
    captureHinted: (sink, signal) => capture('captureHinted', sink, signal),

    sync: (request, sink, signal) =>
      capture('sync', sink, signal, (call) => sendChanges(call, request.changes, request), request.changes),

    hints(onHint, signal) {
      const call = caller.call('hints', {}, signal)
      void (async () => {
        for await (const _ of call.messages) onHint()
      })().catch(() => {})
      // Without hints, captures find everything a little later.
      call.result.catch(() => {})
    },

    look(signal) {
      const run = async () =>
        reported(captureSummary, await caller.call('look', {}, signal).result, 'a summary')
      const result = captures.then(run)
      captures = result.catch(() => {})
      return result
    },

    async keepWork(signal) {
      await caller.call('keepWork', {}, signal).result
    },

    async absorb(signal) {
      const run = () => caller.call('absorb', {}, signal).result
      const result = captures.then(run)
      captures = result.catch(() => {})
      await result
    },

    async hasProcesses(signal) {
      return reported(answer, await caller.call('hasProcesses', {}, signal).result, 'an answer')
    },

    async ping(signal) {
      await caller.call('ping', {}, signal).result
    },

    async killProcesses(signal) {
      await caller.call('killProcesses', {}, signal).result
    },

    kill: () => exec.kill('SIGKILL'),

    async close() {
      await exec.closeStdin()
      const timer = setTimeout(() => void exec.kill('SIGKILL'), settings.stopGraceMs * 2)
      await lost
      clearTimeout(timer)
    },
  }
}

async function sendAll(call: Pick<CallStream, 'send' | 'end'>, bytes: Uint8Array): Promise<void> {
  await sendChunks(call, contentHead, [bytes])
  call.end()
}

/** Reads a stream to its end; the problem that ended it early, if any. */
async function readAll(
  stream: AsyncIterable<Uint8Array>,
  take: (chunk: Uint8Array) => void,
): Promise<string | undefined> {
  try {
    for await (const chunk of stream) take(chunk)
    return undefined
  } catch (error) {
    return `its output is not the protocol (${error instanceof Error ? error.message : String(error)})`
  }
}

function describeExit(exit: ExecExit, tail: string): string {
  const how = exit.limit
    ? `the ${exit.limit} limit`
    : exit.signal
      ? `signal ${exit.signal}`
      : `exit code ${exit.code}`
  const words = tail.trim()
  return words === '' ? how : `${how}; it said: ${words}`
}
