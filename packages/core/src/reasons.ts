/**
 * Why a turn, an agent or an ensemble is in the state it is in. Closed list: no status is ever left to be guessed.
 * `exit` is the exit code of a CLI command that waited for this end; `sentence` is what a person reads.
 */
export const reasons = {
  completed: { exit: 0, sentence: 'The work is done.' },
  nothing_to_deliver: {
    exit: 8,
    sentence: 'The work ended without a change, so there is nothing to deliver.',
  },
  stopped_by_user: { exit: 2, sentence: 'Somebody stopped it.' },
  interrupted: { exit: 2, sentence: 'A newer message took its place.' },
  paused: { exit: 2, sentence: 'It is paused; resume it to go on.' },
  archived: { exit: 2, sentence: 'It was archived; resume it to go on.' },
  expired: { exit: 3, sentence: 'Its lifetime is over; start a new agent from its last commit.' },
  timeout: { exit: 3, sentence: 'It did not finish within its time limit.' },
  stalled: { exit: 3, sentence: 'It was alive but did nothing for too long.' },
  budget: { exit: 7, sentence: 'Its budget is used up.' },
  check_failed: { exit: 3, sentence: 'The check command failed on the result.' },
  agent_error: { exit: 3, sentence: 'The agent ended with an error.' },
  setup_failed: {
    exit: 3,
    sentence: 'It could not be set up: the repository, the sandbox or the setup command failed.',
  },
  boot_timeout: { exit: 3, sentence: 'No sandbox was ready within the ready timeout.' },
  sandbox_lost: { exit: 3, sentence: 'The sandbox was lost too often.' },
  resource_limit: { exit: 3, sentence: 'It reached a resource limit of its sandbox.' },
  data_loss: { exit: 3, sentence: 'Stored data that it needs is missing or damaged.' },
  rate_limited: { exit: 7, sentence: 'The provider refused because of its rate limit.' },
  delivery_failed: { exit: 9, sentence: 'The work is done and kept, but it could not be delivered.' },
  all_children_failed: { exit: 3, sentence: 'Every child failed, so there was nothing to combine.' },
  internal: { exit: 1, sentence: 'Something failed inside Tutti; the server log has the cause.' },
} as const satisfies Record<string, { exit: number; sentence: string }>

export type Reason = keyof typeof reasons

/**
 * Why a turn goes on in another sandbox. `lost`: its sandbox or its worker is gone; `handover`: its worker shuts down or could not begin;
 * `expires`: its sandbox comes to the end of its life; `requested`: somebody asked for another one. Only the first counts as a restart.
 */
export const interruptions = ['lost', 'handover', 'expires', 'requested'] as const
export type Interruption = (typeof interruptions)[number]

/** What stood in the way of a delivery; travels beside the reason `delivery_failed`. */
export const deliveryFailures = {
  auth: 'The forge refused the credentials.',
  protected_branch: 'The forge protects that branch.',
  secret_found: 'The change contains what looks like a secret.',
  conflict: 'The change conflicts with the base branch.',
  moved: 'The branch moved on the remote.',
  closed_by_person: 'A person closed the pull request.',
  forge_unavailable: 'The forge could not be reached.',
  too_large: 'The change is larger than the forge accepts.',
} as const satisfies Record<string, string>

export type DeliveryFailure = keyof typeof deliveryFailures
