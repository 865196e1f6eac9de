# C types of `state.py`.
cimport cython

cdef class State:
    cdef public long nodes
    cdef public long domains
    cdef public long resources
    cdef public long depth
    cdef public long[::1] kind
    cdef public long[::1] gpus
    cdef public long[::1] first_gpu
    cdef public long[::1] node_class
    cdef public long[:, ::1] above
    cdef public long[::1] uplink
    cdef public long[:, ::1] link_most
    cdef public long[::1] ones
    cdef public long[::1] subsets
    cdef public long[::1] subset_start
    cdef public long[:, :, ::1] distance
    cdef public long[:, ::1] way_out
    cdef public long[:, ::1] path_of_set
    cdef public long[:, ::1] way_of_set
    cdef public long[::1] alike_count
    cdef public long[:, ::1] alike
    cdef public long[::1] switch_count
    cdef public long[:, ::1] switches
    cdef public long[::1] socket_count
    cdef public long[:, ::1] sockets
    cdef public long[::1] part_count
    cdef public long[:, ::1] parts
    cdef public long[:, ::1] part_weight
    cdef public long levels
    cdef public long[::1] level_weight
    cdef public long[:, ::1] level_domain
    cdef public long[:, ::1] level_total
    cdef public long[:, ::1] listed
    cdef public long[::1] value_of
    cdef public long[::1] cost_of
    cdef public long[::1] workers
    cdef public long[::1] bundles
    cdef public long[::1] gpus_of
    cdef public long[::1] milli
    cdef public long[::1] memory
    cdef public long[::1] idle_only
    cdef public long[:, ::1] demand
    cdef public long[::1] network
    cdef public long[::1] per_node
    cdef public long[:, ::1] node_ok
    cdef public long[:, ::1] gpu_ok
    cdef public long[::1] split_level
    cdef public long[::1] split_domains
    cdef public long[::1] split_workers
    cdef public long[:, ::1] split_domain
    cdef public long amounts
    cdef public long amounts_anywhere
    cdef public long[:, ::1] takes
    cdef public long[:, ::1] account_of_option
    cdef public long[:, ::1] account_of_node
    cdef public long[::1] account_above
    cdef public long[::1] account_most
    cdef public long[::1] account_kept
    cdef public long jobs
    cdef public long[::1] first_option
    cdef public long[::1] end_option
    cdef public long[::1] first_slot
    cdef public long[::1] profile
    cdef public long[::1] traffic
    cdef public long[::1] path_counts
    cdef public long[::1] fixed
    cdef public long[::1] home
    cdef public long[::1] home_entries
    cdef public long[::1] home_node
    cdef public long[::1] home_gpus
    cdef public long[::1] home_workers
    cdef public long[::1] movable
    cdef public long[::1] away_price
    cdef public long[::1] out_price
    cdef public long away_most
    cdef public long out_most
    cdef public long most_cost
    cdef public long[::1] size
    cdef public long[::1] next_member
    cdef public long[:, :, ::1] excess
    cdef public long most_jobs
    cdef public long path_price
    cdef public long excess_price
    cdef public long excess_counts
    cdef public long gap_price
    cdef public long option_price
    cdef public long[:, ::1] node_free
    cdef public long[::1] gpu_free
    cdef public long[::1] gpu_memory
    cdef public long[::1] gpu_jobs
    cdef public long[::1] idle
    cdef public long[::1] idle_count
    cdef public long[:, ::1] level_free
    cdef public long[:, ::1] link_load
    cdef public long[::1] account_taken
    cdef public long first_trial
    cdef public long[::1] slot_job
    cdef public long[::1] slot_node
    cdef public long[::1] slot_gpus
    cdef public long[::1] slot_workers
    cdef public long[::1] first_of_node
    cdef public long[::1] next_slot
    cdef public long[::1] previous_slot
    cdef public long[::1] option
    cdef public long[::1] entries
    cdef public long[::1] placed
    cdef public long placed_count
    cdef public long[::1] waiting
    cdef public long waiting_count
    cdef public long[::1] position
    cdef public long value
    cdef public long cost
    cdef public long away_count
    cdef public long out_count
    cdef public long[::1] words
    cdef public long never
    cdef public long look
    cdef public long few
    cdef public long blinks
    cdef public double[::1] quantiles
    cdef public long[::1] lowest
    cdef public long[::1] domain_start
    cdef public long[::1] domain_nodes
    cdef public long[::1] candidates
    cdef public long candidate_count
    cdef public long everywhere
    cdef public long shifted
    cdef public long zones
    cdef public long[:, ::1] zone
    cdef public long[::1] closed
    cdef public long whole_node
    cdef public long[::1] candidate_of
    cdef public long stopped
    cdef public long move
    cdef public long[::1] queue
    cdef public double[::1] key
    cdef public double[::1] scarcity
    cdef public double[::1] price
    cdef public long[::1] tried
    cdef public long[::1] kept
    cdef public long[::1] better
    cdef public long chosen
    cdef public long best_cost
    cdef public long best_option
    cdef public long best_entries
    cdef public long grown_cost
    cdef public long[::1] grown_workers
    cdef public long[::1] grown_gpus
    cdef public long[::1] near_cost
    cdef public long[::1] near_gpus
    cdef public long[::1] far_cost
    cdef public long[::1] in_split
    cdef public long[::1] touched
    cdef public long[::1] touched_jobs
    cdef public long touched_count
    cdef public long[::1] old_option
    cdef public long[::1] old_entries
    cdef public long[::1] old_node
    cdef public long[::1] old_gpus
    cdef public long[::1] old_workers
    cdef public long[::1] changed
    cdef public long[::1] changed_jobs
    cdef public long changed_count
    cdef public long[::1] best_option_of
    cdef public long[::1] best_entries_of
    cdef public long[::1] best_node
    cdef public long[::1] best_gpus
    cdef public long[::1] best_workers
    cdef public long best_value
    cdef public long best_plan_cost
    cdef public long best_changes
    cdef public long[::1] in_domain
    cdef public long[::1] met
    cdef public long[::1] met_level
    cdef public long searches

@cython.locals(number=long)
cdef long count(State s, long gpus) noexcept nogil
cdef void wait(State s, long job) noexcept nogil
cdef void begin(State s, long job) noexcept nogil
cdef void end(State s, long job) noexcept nogil
cdef void enter(State s, long slot) noexcept nogil
cdef void leave(State s, long slot) noexcept nogil
