/** One setting: its unit, its default with the reason, and the environment variable that overrides it. */
export interface Setting<T> {
  readonly unit: 'ms' | 'count' | 'bytes' | 'percent' | 'text' | 'flag'
  readonly default: T
  readonly env: string
  readonly why: string
}

const setting = <T>(unit: Setting<T>['unit'], value: T, env: string, why: string): Setting<T> => ({
  unit,
  default: value,
  env,
  why,
})

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/**
 * Every duration and limit that can be set, in one table (design §9). Order of precedence: flag, environment, `tutti.toml`
 * (project), user file, default. The keys are the names in the files.
 */
export const settings = {
  'sandboxes.max': setting<number | 'cores'>(
    'count',
    'cores',
    'TUTTI_MAX_SANDBOXES',
    'one agent can keep one core busy',
  ),
  'sandboxes.provider': setting(
    'text',
    'local',
    'TUTTI_SANDBOXES_PROVIDER',
    'bubblewrap needs no engine and no image; `docker` makes containers of Docker or Podman',
  ),
  'sandboxes.image': setting(
    'text',
    '',
    'TUTTI_SANDBOXES_IMAGE',
    'what containers are made of; needed for them, as only you know what your agents work with',
  ),
  'sandboxes.engine': setting(
    'text',
    '',
    'TUTTI_SANDBOXES_ENGINE',
    'path of the socket of the container engine; empty: DOCKER_HOST, else the usual places',
  ),
  'sandboxes.pull': setting(
    'text',
    'never',
    'TUTTI_SANDBOXES_PULL',
    'what runs is what somebody put there; `missing` fetches an image that the engine does not have',
  ),
  'sandbox.memory': setting(
    'bytes',
    2 * 1024 ** 3,
    'TUTTI_SANDBOX_MEMORY',
    'builds and test runners need about one GiB',
  ),
  'sandbox.pids': setting(
    'count',
    512,
    'TUTTI_SANDBOX_PIDS',
    'ends a fork bomb, leaves room for a parallel build',
  ),
  'sandbox.cpu': setting(
    'percent',
    200,
    'TUTTI_SANDBOX_CPU',
    'two cores, so that one busy agent leaves room for others',
  ),
  'sandbox.disk': setting('bytes', 4 * 1024 ** 3, 'TUTTI_SANDBOX_DISK', 'a checkout with its dependencies'),
  'sandbox.files': setting('count', 500_000, 'TUTTI_SANDBOX_FILES', 'two large dependency folders'),
  'sandbox.file_size': setting(
    'bytes',
    1024 ** 3,
    'TUTTI_SANDBOX_FILE_SIZE',
    'one runaway file must not fill the disk',
  ),
  'sandbox.ready_timeout': setting(
    'ms',
    10 * minute,
    'TUTTI_READY_TIMEOUT',
    'covers a setup command that installs dependencies',
  ),
  'sandbox.answer_timeout': setting(
    'ms',
    15 * second,
    'TUTTI_SANDBOX_ANSWER_TIMEOUT',
    'a frozen sandbox is replaced within two heartbeat timeouts; a busy one answers long before',
  ),
  'sandbox.max_life': setting(
    'ms',
    0,
    'TUTTI_SANDBOX_MAX_LIFE',
    '0 is without end: one that works gets no worse with time; set it where nothing may run for long, as behind a new image',
  ),
  'sandbox.end_margin': setting(
    'ms',
    minute,
    'TUTTI_SANDBOX_END_MARGIN',
    'of a sandbox that will be ended: room for the stop of a turn, its last capture and a checkpoint before that',
  ),
  'turn.timeout': setting(
    'ms',
    2 * hour,
    'TUTTI_TURN_TIMEOUT',
    'longer than agents usually work on one prompt',
  ),
  'turn.stall_timeout': setting(
    'ms',
    30 * minute,
    'TUTTI_STALL_TIMEOUT',
    'the longest silent build or model call worth waiting for',
  ),
  'turn.heartbeat_timeout': setting(
    'ms',
    10 * second,
    'TUTTI_HEARTBEAT_TIMEOUT',
    'a lost worker is noticed within this time',
  ),
  'turn.state_interval': setting(
    'ms',
    minute,
    'TUTTI_STATE_INTERVAL',
    'bounds what a reader replays within one turn (design §4)',
  ),
  'turn.capture_interval': setting(
    'ms',
    2 * second,
    'TUTTI_CAPTURE_INTERVAL',
    'bounds the work that a lost sandbox can take with it; in a workspace so large that a capture takes more than a tenth of it, nine times as long as that',
  ),
  'turn.checkpoint_interval': setting(
    'ms',
    5 * minute,
    'TUTTI_CHECKPOINT_INTERVAL',
    'bounds what a recovery replays after a long turn; there is one at each commit of the agent too',
  ),
  'turn.capture_timeout': setting(
    'ms',
    15 * minute,
    'TUTTI_CAPTURE_TIMEOUT',
    'the last capture of half a million new files on a slow disk; a stop waits for `stop.answer` only',
  ),
  'workspace.watch': setting(
    'text',
    'yes',
    'TUTTI_WATCH_WORKSPACE',
    'a saved file is seen at once and not at the next capture; captures find everything without it, for file systems that tell nothing: `no`',
  ),
  'workspace.ignored': setting(
    'text',
    'small',
    'TUTTI_IGNORED_FILES',
    'files up to 1 MiB that git ignores come back after a loss, 64 MiB in all; what a setup makes again does not; `all` and `none` are the others',
  ),
  'workspace.env_files': setting(
    'text',
    'no',
    'TUTTI_ENV_FILES',
    '`.env` files that git ignores may hold secrets, and what is kept is stored; `yes` keeps them',
  ),
  'agent.inactivity': setting('ms', 10 * minute, 'TUTTI_INACTIVITY', 'releases compute only (seed 003)'),
  'agent.retention': setting(
    'ms',
    30 * day,
    'TUTTI_RETENTION',
    'uncommitted files are kept this long (seed 003)',
  ),
  'question.timeout': setting(
    'ms',
    30 * minute,
    'TUTTI_QUESTION_TIMEOUT',
    'a person has time to answer, a forgotten agent ends',
  ),
  'check.timeout': setting('ms', 15 * minute, 'TUTTI_CHECK_TIMEOUT', 'a full test run of a large repository'),
  'agent.default': setting(
    'text',
    'embedded',
    'TUTTI_AGENT',
    'needs no other program; takes the first model that is configured',
  ),
  'ensemble.agents': setting(
    'count',
    3,
    'TUTTI_AGENTS',
    'enough for attempts to differ, few enough for a laptop',
  ),
  'ensemble.strategy': setting(
    'text',
    'merge',
    'TUTTI_STRATEGY',
    'keeps what each attempt did well; pick when they exclude one another',
  ),
  'ensemble.timeout': setting(
    'ms',
    day,
    'TUTTI_ENSEMBLE_TIMEOUT',
    "the last resort behind the children's own limits",
  ),
  'stop.grace': setting('ms', 1500, 'TUTTI_STOP_GRACE', 'SIGTERM to SIGKILL; a stop must end within 5 s'),
  'stop.answer': setting(
    'ms',
    2 * second,
    'TUTTI_STOP_ANSWER',
    'what a sandbox has beyond the grace before it is killed; a stop must end within 5 s',
  ),
  'stream.heartbeat': setting(
    'ms',
    10 * second,
    'TUTTI_STREAM_HEARTBEAT',
    'below the idle limit of common proxies (design §11.11)',
  ),
  'deliver.mode': setting(
    'text',
    'ready',
    'TUTTI_PULL_REQUEST',
    'a pull request is what was asked for; draft and none are the others',
  ),
  'server.api_keys': setting(
    'text',
    '',
    'TUTTI_API_KEYS',
    'separated by commas; needed to listen beyond loopback',
  ),
  'server.port': setting('count', 7233 + 500, 'TUTTI_PORT', 'next to no well-known service'),
  'worker.metrics_port': setting(
    'count',
    0,
    'TUTTI_WORKER_METRICS_PORT',
    '0: off; `tutti dev` shows the worker on the page of its API',
  ),
  'server.address': setting(
    'text',
    '',
    'TUTTI_ADDRESS',
    'empty means: the server that the data folder names',
  ),
  'blobs.bucket': setting('text', '', 'TUTTI_BLOBS_BUCKET', 'empty: blobs are files in the data folder'),
  'blobs.prefix': setting('text', '', 'TUTTI_BLOBS_PREFIX', 'several servers can share a bucket by it'),
  'blobs.endpoint': setting(
    'text',
    '',
    'TUTTI_BLOBS_ENDPOINT',
    'empty: AWS; else the address of another server',
  ),
  'blobs.region': setting(
    'text',
    '',
    'TUTTI_BLOBS_REGION',
    'empty: what the AWS SDK finds; credentials always are',
  ),
  'blobs.conditional_writes': setting(
    'text',
    'yes',
    'TUTTI_BLOBS_CONDITIONAL_WRITES',
    'a blob that is there is not sent again; `no` for servers that know no If-None-Match',
  ),
  'data.dir': setting('text', '', 'TUTTI_DATA_DIR', "empty means: below the user's data folder"),
  'log.level': setting('text', 'info', 'LOG_LEVEL', 'what an operator needs and no more'),
} as const satisfies Record<string, Setting<number | string>>

export type SettingName = keyof typeof settings
