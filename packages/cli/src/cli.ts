import type { Command } from 'commander'
import { TuttiError, errorCodes } from '@tutti/core'
import { createContext, type CliContext, type GlobalOptions } from './context.ts'
import type { CliDeps } from './deps.ts'

/** What the files of the commands register with. */
export interface Cli {
  readonly deps: CliDeps
  /**
   * Makes a commander action of a command: gives it its context, its arguments and its options. The number that it returns is
   * the exit code. `signals: false`: the command deals with Ctrl-C and SIGTERM itself.
   */
  action<A extends readonly unknown[], O extends object>(
    run: (context: CliContext, ...rest: [...args: A, options: O]) => Promise<number | void>,
    settings?: { readonly signals?: boolean },
  ): (...given: [...A, O, Command]) => Promise<void>
}

export function createCli(deps: CliDeps): Cli {
  return {
    deps,
    action(run, { signals = true } = {}) {
      return async (...given) => {
        const command = given.at(-1) as Command
        const args = given.slice(0, -2)
        const options = command.optsWithGlobals()
        const stop = new AbortController()
        const unsubscribe = signals
          ? [
              deps.onSignal('SIGINT', () => (stop.signal.aborted ? deps.exitNow(130) : stop.abort())),
              deps.onSignal('SIGTERM', () => stop.abort()),
            ]
          : []
        try {
          const context = createContext(deps, options as GlobalOptions, stop.signal)
          // commander types an action's arguments by position; the command's own file names them.
          const code = await (run as (context: CliContext, ...rest: unknown[]) => Promise<number | void>)(
            context,
            ...args,
            options,
          )
          if (typeof code === 'number') deps.setExitCode(code)
        } catch (thrown) {
          // Ending what one follows is no failure, and has its own exit code.
          const error = TuttiError.from(thrown)
          if (!stop.signal.aborted || error.code !== 'cancelled') throw thrown
          deps.setExitCode(errorCodes.cancelled.exit)
        } finally {
          for (const off of unsubscribe) off()
        }
      }
    },
  }
}
