import { resolve } from 'node:path'
import { createTuttiClient, readEndpoint, type TuttiClient } from '@tutti/client'
import { TuttiError, type SettingName } from '@tutti/core'
import { loadConfig, type LoadedConfig } from './config/load-config.ts'
import type { CliDeps } from './deps.ts'
import { createOutput, type Output, type OutputFormat } from './output/output.ts'

/** The options that every command has. */
export interface GlobalOptions {
  readonly dataDir?: string
  readonly address?: string
  readonly output?: OutputFormat
  readonly color?: boolean
}

/** What a command works with. */
export interface CliContext {
  readonly deps: CliDeps
  readonly output: Output
  /** Aborted by the first Ctrl-C or SIGTERM, unless the command takes these over. */
  readonly signal: AbortSignal
  readonly config: (flags?: FlagSettings) => LoadedConfig
  /** The server's client. @throws TuttiError `unavailable` when none is up. */
  readonly connect: () => Promise<TuttiClient>
  /** The same, but undefined when none is up. */
  readonly tryConnect: () => Promise<TuttiClient | undefined>
}

export type FlagSettings = Partial<Record<SettingName, { readonly value: string; readonly flag: string }>>

export function createContext(deps: CliDeps, options: GlobalOptions, signal: AbortSignal): CliContext {
  const output = createOutput(deps.stdout, deps.stderr, {
    format: options.output ?? 'text',
    color: options.color ?? true,
    env: deps.env,
  })
  let loaded: LoadedConfig | undefined
  const config = (flags: FlagSettings = {}) => {
    const global: FlagSettings = {
      ...(options.dataDir === undefined
        ? {}
        : { 'data.dir': { value: resolve(deps.cwd, options.dataDir), flag: '--data-dir' } }),
      ...(options.address === undefined
        ? {}
        : { 'server.address': { value: options.address, flag: '--address' } }),
      ...flags,
    }
    return loadConfig({ flags: global, env: deps.env, cwd: deps.cwd })
  }
  const tryConnect = async () => {
    loaded ??= config()
    const address = String(loaded.values['server.address'])
    // A key from a file is only ever sent to the server that wrote the file.
    if (address !== '') return createTuttiClient({ address, key: deps.env['TUTTI_API_KEY'] ?? '' })
    const endpoint = await readEndpoint(String(loaded.values['data.dir']))
    return endpoint && createTuttiClient({ address: endpoint.address, key: endpoint.key })
  }
  return {
    deps,
    output,
    signal,
    config,
    tryConnect,
    async connect() {
      const client = await tryConnect()
      if (client) return client
      const dataDir = String((loaded ??= config()).values['data.dir'])
      throw new TuttiError('unavailable', `No Tutti server runs on the data folder ${dataDir}.`, {
        data_dir: dataDir,
        server: 'unreachable',
      })
    },
  }
}
