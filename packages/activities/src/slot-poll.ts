/** How often whoever is next looks again whether a slot of this host is free, in milliseconds. */
export const slotPollMs = 250
