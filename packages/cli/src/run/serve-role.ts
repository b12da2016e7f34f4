import { createTuttiClient, readEndpoint } from '@tutti/client'
import { TuttiError } from '@tutti/core'
import type { CliContext, FlagSettings } from '../context.ts'
import { isTextOutput, type Output } from '../output/output.ts'
import { safeLine } from '../output/terminal-text.ts'
import type { LockHolder, LockKind } from '../stack/locks.ts'
import { startStack, type Stack } from '../stack/start-stack.ts'
import { parseCount } from '../values/count.ts'
import { watchInterrupts } from './watch-interrupts.ts'

export interface ServeOptions {
  readonly port?: string
  readonly temporalPort?: string
  readonly uiPort?: string
  readonly maxSandboxes?: string
}

/** What `-o json` prints, one line. */
interface Ready {
  readonly address: string | null
  readonly temporal_address: string
  readonly temporal_ui: string | null
  readonly data_dir: string
  readonly pid: number
  readonly role: string
}

const joinMs = 30_000

/** Runs a role until a signal or a failure; a second start says where the first one is and ends. Returns the exit code. */
export async function serveRole(context: CliContext, kind: LockKind, options: ServeOptions): Promise<number> {
  const { deps, output } = context
  const flags: FlagSettings = {
    ...(options.port === undefined ? {} : { 'server.port': { value: options.port, flag: '--port' } }),
    ...(options.maxSandboxes === undefined
      ? {}
      : { 'sandboxes.max': { value: options.maxSandboxes, flag: '--max-sandboxes' } }),
  }
  const config = context.config(flags)
  const starting = new AbortController()
  const killing = new AbortController()
  const ended = Promise.withResolvers<void>()
  let stack: Stack | undefined
  const interrupts = watchInterrupts(deps, {
    onFirst(isKey) {
      starting.abort()
      ended.resolve()
      if (stack) output.say(isKey ? 'Draining; press Ctrl-C again to kill.' : 'Draining.')
    },
    onSecond() {
      output.say('Killing it now.')
      killing.abort()
      deps.exitNow(130)
    },
  })
  try {
    const port = (text: string | undefined, flag: string) =>
      text === undefined ? undefined : { port: parseCount(text, flag, 1, 65_535), flag }
    const temporalPort = port(options.temporalPort, '--temporal-port')
    const temporalUiPort = port(options.uiPort, '--ui-port')
    const started = await startStack({
      kind,
      logTo: output.stderr.isTTY ? 'terminal' : 'stderr',
      config,
      env: deps.env,
      parts: await deps.loadParts(),
      ...(temporalPort === undefined ? {} : { temporalPort }),
      ...(temporalUiPort === undefined ? {} : { temporalUiPort }),
      log: (line) => output.say(line),
      signal: starting.signal,
      killed: killing.signal,
    })
    if ('holder' in started)
      return await join(context, String(config.values['data.dir']), started.holder, starting.signal)
    stack = started
    const ready = {
      address: started.api?.address ?? null,
      temporal_address: started.temporal.address,
      temporal_ui: started.temporal.uiAddress ?? null,
      data_dir: started.dataDir,
      pid: process.pid,
      role: started.role,
    }
    printReady(output, ready)
    if (isTextOutput(output))
      output.say(output.paintTalk.dim(`Ready (${ready.role}, pid ${ready.pid}). Ctrl-C drains and ends it.`))
    await Promise.race([ended.promise, started.failed])
    return 0
  } catch (thrown) {
    // Asked to end before it was up: that is what it does.
    if (starting.signal.aborted && TuttiError.from(thrown).code === 'cancelled') return 0
    throw thrown
  } finally {
    await stack?.stop()
    interrupts.stop()
  }
}

function printReady(output: Output, ready: Ready): void {
  if (!isTextOutput(output)) return output.jsonLine(ready)
  const row = (name: string, value: string | null) =>
    value !== null && output.line(`${name.padEnd(13)}${safeLine(value)}`)
  row('API', ready.address)
  row('Temporal', ready.temporal_address)
  row('Temporal UI', ready.temporal_ui)
  row('Data', ready.data_dir)
}

/** The part runs already: prints where, and ends well. */
async function join(
  { deps, output }: CliContext,
  dataDir: string,
  holder: LockHolder,
  signal: AbortSignal,
): Promise<number> {
  const deadline = deps.clock.monotonic() + joinMs
  for (;;) {
    const endpoint = await readEndpoint(dataDir)
    if (endpoint) {
      const { components } = await createTuttiClient(endpoint).system.getSystemInfo({}, { signal })
      const addressOf = (name: string) => components.find((component) => component.name === name)?.address
      output.say(`It runs already (${holder.role}, pid ${holder.pid}).`)
      printReady(output, {
        address: endpoint.address,
        temporal_address: addressOf('temporal') ?? '',
        temporal_ui: addressOf('temporal_ui') ?? null,
        data_dir: dataDir,
        pid: endpoint.pid,
        role: holder.role,
      })
      return 0
    }
    if (deps.clock.monotonic() > deadline) {
      throw new TuttiError(
        'failed_precondition',
        `${dataDir} is held by ${holder.role} (pid ${holder.pid}), which has no API. End it first, or use another --data-dir.`,
        { role: holder.role, pid: holder.pid },
      )
    }
    await deps.clock.sleep(100, signal)
  }
}
