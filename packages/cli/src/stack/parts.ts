import type { RebuiltLog } from '@tutti/store'
import type { TemporalAccess } from '@tutti/worker'
import type { ResolvedConfig } from '../config/load-config.ts'

/** What every part of the stack is started with. */
export interface PartContext {
  /**
   * Where the server's own log goes: to stderr from a `serve` or `dev` of its own, to `server.log` of the data folder inside `run`,
   * where it would be in the way. `terminal`: to that file, and what is wrong also to stderr.
   */
  readonly logTo: 'stderr' | 'file' | 'terminal'
  /** Talk for a person. */
  readonly log: (line: string) => void
  readonly dataDir: string
  readonly config: ResolvedConfig
  readonly env: Readonly<Record<string, string | undefined>>
  readonly temporal: {
    readonly address: string
    readonly namespace: string
    readonly access: TemporalAccess
    readonly uiAddress?: string
    readonly origin: string
  }
}

/** Opened once per process and shared by its parts. */
export interface OpenStores {
  close(): Promise<void>
}

export interface RunningPart {
  /** Ends it with a drain; resolves when nothing of it runs any more. */
  stop(): Promise<void>
  /** Ends at once everything that would outlive this process. Synchronous: the process exits next. */
  kill?(): void
  /** Rejects when the part fails by itself. */
  readonly failed?: Promise<never>
}

export interface RunningApi extends RunningPart {
  /** Says that it is not ready any more, before anything is stopped. */
  drain(): void
  /** The data folder's local key and the file (0600) that it is in. */
  readonly key: string
  readonly keyFile: string
}

/** The parts that `dev`, `serve` and an embedded `run` put together. Made by the composition root. */
export interface StackParts<S extends OpenStores = OpenStores> {
  openStores(dataDir: string, config: ResolvedConfig): Promise<S>
  /** Makes what the database does not have again from the archive; nobody else may have the stores open. */
  rebuild(stores: S, signal: AbortSignal): AsyncIterable<RebuiltLog>
  startApi(
    stores: S,
    context: PartContext & {
      readonly host: string
      readonly port: number
      readonly mode: 'embedded' | 'serve'
    },
  ): Promise<RunningApi>
  /** `index` is the N of this process's lock `worker-N`, from 1. */
  startWorker(
    stores: S,
    context: PartContext & { readonly index: number; readonly mode: 'embedded' | 'serve' },
  ): Promise<RunningPart>
}
